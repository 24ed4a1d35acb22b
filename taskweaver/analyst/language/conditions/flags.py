"""Conditions that are the name of a column of two values, as ``remote`` of yes and no."""

from __future__ import annotations

from collections.abc import Iterator

from taskweaver.analyst.language.conditions.options import Cond, Found, Option
from taskweaver.analyst.language.lookup.parser import Words
from taskweaver.analyst.language.words.lexicon import LEXICON
from taskweaver.analyst.language.words.meanings import means_flag
from taskweaver.analyst.readings.condition import Column, Comparison, Scalar


def flags(words: Words, at: int) -> Iterator[Found]:
    """Yield the flags named at a token, by their name or by a verb or noun of it."""
    for column in words.columns(at):
        if len(column.ref.names) == 1 and column.ref.distance <= 2:
            yield from _flag(words, at, column.end, column.ref.names[0], column.cost + 0.5)
    if at >= words.size or words.tokens[at].kind != "word" or words.lower(at) in LEXICON:
        return
    named = [name for name in words.scope.columns if means_flag(words.lower(at), name)]
    is_column = any(column.end == at + 1 for column in words.columns(at))
    if len(named) == 1 and not words.values(at) and not is_column:
        yield from _flag(words, at, at + 1, named[0], 0.6)


def _flag(words: Words, at: int, end: int, name: str, cost: float) -> Iterator[Found]:
    value = words.scope.flag_value(name)
    if value is None:
        return
    option = Option(name, Comparison(Column(name), "==", _typed(value, words, name)))
    yield end, Cond((option,), words.raw(at, end), is_flag=True), cost


def _typed(value: object, words: Words, name: str) -> Scalar:
    if words.profile(name).kind == "integer":
        return int(float(str(value)))
    return True if words.profile(name).kind == "flag" else str(value)
