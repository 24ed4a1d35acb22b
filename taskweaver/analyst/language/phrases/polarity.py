"""Superlatives that need the meaning of a quantity: ``worst delay``, ``when did it peak``."""

from __future__ import annotations

from collections.abc import Iterator

from taskweaver.analyst.language.lookup.parser import Words
from taskweaver.analyst.language.phrases.atoms import Pick
from taskweaver.analyst.language.words.names import name_words, singular

_BAD = frozenset(
    "delay murder assault crime unemployment error loss death accident complaint defect pollution "
    "debt wait fine penalty failure injury mortality".split()
)
_GOOD = frozenset(
    "score rating profit revenue income salary wage grade margin satisfaction yield".split()
)


def judged(words: Words, at: int) -> Iterator[tuple[int, Pick, float]]:
    """Yield ``best`` and ``worst`` of a good or bad quantity, and ``peak`` with ``when``."""
    low = words.lower(at)
    if low in ("peak", "peaked") and words.lower(0) in ("when", "in"):
        yield at + 1, Pick(ascending=False, word="highest"), 1.0
    if low not in ("best", "worst"):
        return
    named = _quantities(words)
    is_bad, is_good = bool(named & _BAD), bool(named & _GOOD)
    if is_bad != is_good:
        yield at + 1, Pick(ascending=is_bad == (low == "best"), word="highest"), 1.0


def _quantities(words: Words) -> set[str]:
    """Return the words of the request and of the numeric columns it names."""
    found = {singular(words.lower(at)) for at in range(words.size)}
    for at in range(words.size):
        for column in words.columns(at):
            for name in column.ref.names:
                if words.is_numeric(name) and len(column.ref.names) == 1:
                    found.update(name_words(name))
    return found
