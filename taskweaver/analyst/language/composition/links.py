"""Verbs between the rows and a condition, as in ``flights operated by Delta``.

A verb adds nothing only where the condition alone has the same meaning: values of a column that
may be the verb's object, and times of a column that is named after the verb or after no event.
"""

from __future__ import annotations

from taskweaver.analyst.language.composition.parts import Phrases
from taskweaver.analyst.language.conditions.options import Cond
from taskweaver.analyst.language.phrases.atoms import Atom, Mark
from taskweaver.analyst.language.words.names import name_words

_NEUTRAL = frozenset("date time year month day timestamp datetime hour when week quarter".split())
_STARTS = frozenset("origin from start source departure dep depart begin".split())
_ENDS = frozenset("dest destination to end arrival arr arrive target into".split())
_STEM = 4


def drop_links(parts: Phrases) -> None:
    """Use the verbs that add nothing to the conditions after them."""
    for atom, mark in parts.all(Mark):
        if mark.kind == "link" and _is_idle(parts, atom, mark):
            parts.use(atom)


def _is_idle(parts: Phrases, atom: Atom, mark: Mark) -> bool:
    """Return whether the verb of a mark adds nothing to the condition after it."""
    cond = _condition_after(parts, atom)
    if cond is None or len(cond.options) != 1:
        return False
    words = set(name_words(cond.options[0].column))
    verb = parts.phrase(atom).casefold()
    if cond.is_time:
        is_named = any(word[:_STEM] == verb[:_STEM] for word in words)
        return mark.detail == "event" and (is_named or words <= _NEUTRAL)
    if mark.detail == "from":
        return not words & _ENDS
    if mark.detail == "into":
        return not words & _STARTS
    return True


def _condition_after(parts: Phrases, atom: Atom) -> Cond | None:
    """Return the condition that follows a phrase, prepositions apart."""
    following = (other for other in parts.atoms if other.start >= atom.end)
    for other in following:
        content = other.content
        if isinstance(content, Cond):
            return content
        if not (isinstance(content, Mark) and content.kind in ("filler", "by")):
            return None
    return None
