"""Explanations in brackets: a short form of the value before them, as in ``Ohio (OH)``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from taskweaver.analyst.language.conditions.options import Cond
from taskweaver.analyst.language.conditions.values import value_conditions
from taskweaver.analyst.language.lookup.parser import Words

Found = tuple[int, Cond, float]


def explained(words: Words, at: int, found: Sequence[Found]) -> Iterator[Found]:
    """Yield values with their short form in brackets; the short form says which value it is."""
    for middle, cond, _ in found:
        if not cond.is_bare or words.lower(middle) != "(":
            continue
        for end, short, cost in value_conditions(words, middle + 1):
            if words.lower(end) == ")" and short.is_bare and _is_short(short.phrase, cond.phrase):
                yield end + 1, replace(short, phrase=words.raw(at, end + 1)), cost


def _is_short(short: str, phrase: str) -> bool:
    """Return whether letters are a short form of a phrase: ``OH`` of ``Ohio``."""
    rest = iter(phrase.casefold())
    is_inside = all(letter in rest for letter in short.casefold())
    return len(short) < len(phrase) and short[:1].casefold() == phrase[:1].casefold() and is_inside
