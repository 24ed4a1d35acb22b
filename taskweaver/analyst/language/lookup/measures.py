"""Columns and arithmetic of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from taskweaver.analyst.language.lookup.parser import Words
from taskweaver.analyst.language.words.lexicon import DIMENSION_COLUMNS
from taskweaver.analyst.language.words.names import name_words
from taskweaver.analyst.readings.condition import (
    Arithmetic,
    Column,
    Constant,
    Expression,
    columns_of,
)


@dataclass(frozen=True, slots=True)
class Operand:
    """Value of a row that a request names.

    Attributes:
        options: Its meanings; more than one if the column is not clear.
        distance: Distance of the words from the name, as of `ColumnRef`.
    """

    options: tuple[Expression, ...]
    phrase: str
    distance: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it may be; empty for arithmetic."""
        return tuple(option.name for option in self.options if isinstance(option, Column))

    @property
    def is_arithmetic(self) -> bool:
        """Whether it is arithmetic of columns."""
        return isinstance(self.options[0], Arithmetic)


Found = tuple[int, Operand, float]
Operator = Literal["+", "-", "*", "/"]
_OPERATORS: dict[str, Operator] = {"+": "+", "-": "-", "*": "*", "/": "/"}


def operands(words: Words, at: int) -> Iterator[Found]:
    """Yield the columns and arithmetic that begin at a token."""
    if at >= words.size:
        return
    for column in words.columns(at):
        ref = column.ref
        options = tuple(Column(name) for name in ref.names)
        yield column.end, Operand(options, ref.phrase, ref.distance), column.cost
    for end, expression, cost in _sums(words, at):
        if isinstance(expression, Arithmetic) and columns_of(expression):
            yield end, Operand((expression,), words.raw(at, end)), cost - 0.2
    yield from _named_forms(words, at)


Part = tuple[int, Expression, float]


def _factors(words: Words, at: int) -> Iterator[Part]:
    at = words.skip(at, "the")
    if words.lower(at) == "(":
        for end, inner, cost in _sums(words, at + 1):
            if words.lower(end) == ")":
                yield end + 1, inner, cost
        return
    for column in words.columns(at):
        numeric = [name for name in column.ref.names if words.is_numeric(name)]
        if len(numeric) == 1:
            yield column.end, Column(numeric[0]), column.cost
    if at < words.size and words.tokens[at].number is not None and not words.tokens[at].is_percent:
        value = words.tokens[at].number or 0.0
        yield at + 1, Constant(value), 0.0


def _operator(words: Words, at: int, allowed: str) -> Iterator[tuple[int, Operator]]:
    if words.lower(at) == "-" and "-" in allowed and words.is_spaced(at):
        yield at + 1, "-"
    for end, sense in words.of_kind(at, "op"):
        if sense.detail in allowed:
            yield words.skip(end, "the", "by"), _OPERATORS[sense.detail]


def _chain(words: Words, at: int, *, is_product: bool) -> list[Part]:
    level = _factors(words, at) if is_product else iter(_chain(words, at, is_product=True))
    front = list(level)
    found = list(front)
    for _ in range(4):
        longer: list[Part] = []
        for middle, left, cost in front:
            for start, operator in _operator(words, middle, "*/" if is_product else "+-"):
                right = (
                    _factors(words, start) if is_product else _chain(words, start, is_product=True)
                )
                is_compared = words.lower(middle) in ("over", "less")
                longer += [
                    (end, Arithmetic(operator, left, value), cost + more)
                    for end, value, more in right
                    if not (is_compared and isinstance(value, Constant))
                ]
        found += longer
        front = longer
        if not front:
            break
    return found


def _sums(words: Words, at: int) -> list[Part]:
    return _chain(words, at, is_product=False)


def _named_forms(words: Words, at: int) -> Iterator[Found]:
    """Yield ``ratio of a to b``, ``product of a and b`` and ``sum of a and b`` of columns."""
    joints = {"ratio": ("to", "and", "over"), "product": ("and", "with"), "sumof": ("and",)}
    for stop, sense in words.of_kind(at, "ratio", "product", "sumof"):
        for middle, left, cost in _factors(words, words.skip(stop, "of", "between")):
            if words.lower(middle) not in joints[sense.kind] or not isinstance(left, Column):
                continue
            for end, right, more in _factors(words, middle + 1):
                if isinstance(right, Column) and sense.kind != "sumof":
                    operation = Arithmetic(_OPERATORS[sense.detail], left, right)
                    yield end, Operand((operation,), words.raw(at, end)), cost + more


def dimension_columns(words: Words, dimension: str) -> tuple[str, ...]:
    """Return the numeric columns that hold a dimension, for example ``mass``."""
    wanted = set(DIMENSION_COLUMNS.get(dimension, dimension).split())
    numeric = [name for name in words.scope.columns if words.is_numeric(name)]
    exact = tuple(name for name in numeric if name.casefold() in wanted)
    return exact or tuple(name for name in numeric if wanted & set(name_words(name)))
