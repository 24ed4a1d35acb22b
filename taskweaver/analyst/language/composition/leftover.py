"""Words that no phrase explains: those that forbid an answer, and those that are only named."""

from __future__ import annotations

from taskweaver.analyst.language.composition.parts import Phrases, UnfitError
from taskweaver.analyst.language.conditions.options import Cond
from taskweaver.analyst.language.lookup.measures import Operand
from taskweaver.analyst.language.phrases.atoms import Atom, Fn, Mark

_MOST_DESCRIBING = 2


def check_unused(parts: Phrases) -> tuple[str, ...]:
    """Use the words that may be left unused, and return them.

    Raises:
        UnfitError: If there are words that could change the answer.
    """
    marks = [(atom, mark) for atom, mark in parts.all(Mark) if mark.kind == "unused"]
    blocking = [mark.detail for atom, mark in marks if not _is_harmless(parts, atom)]
    if blocking:
        raise UnfitError(blocking)
    for atom, _ in marks:
        parts.use(atom)
    return tuple(mark.detail for _, mark in marks)


def _is_harmless(parts: Phrases, atom: Atom) -> bool:
    """Return whether a word is the name of some arithmetic."""
    words, at = parts.words, atom.start
    token = words.tokens[at]
    if token.kind != "word" or len(token.text) < 3:
        return False
    if words.senses(at) or words.columns(at) or words.values(at):
        return False
    return _is_described(parts, atom) or (token.text.islower() and _is_label(parts, atom))


def _is_described(parts: Phrases, atom: Atom) -> bool:
    """Return whether a word describes the value or column in parentheses after it."""
    words, opening = parts.words, atom.end
    unused = [other.start for other, mark in parts.every(Mark) if mark.kind == "unused"]
    while opening in unused and opening < atom.end + _MOST_DESCRIBING:
        opening += 1
    if words.lower(opening) != "(":
        return False
    inner = [other for other in parts.atoms if other.start > opening]
    closing = next((at for at, other in enumerate(inner) if words.lower(other.start) == ")"), 0)
    contents = [other.content for other in inner[:closing]]
    named = [content for content in contents if not isinstance(content, Mark)]
    is_only = all(c.kind == "filler" for c in contents if isinstance(c, Mark))
    if len(named) != 1 or not is_only:
        return False
    content = named[0]
    return isinstance(content, Operand) or (isinstance(content, Cond) and not content.is_negative)


def _is_label(parts: Phrases, atom: Atom) -> bool:
    """Return whether a word names the arithmetic that follows it in brackets or after a comma."""
    following = [other for other in parts.atoms if other.start >= atom.end]
    for other in following:
        if isinstance(other.content, Operand) and other.content.is_arithmetic:
            return True
        is_light = isinstance(other.content, Mark) and other.content.kind in ("filler", "unused")
        if not is_light and not isinstance(other.content, Operand | Fn):
            return False
    return False
