"""Conditions with the columns they may be about."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.analyst.readings.condition import And, Column, Comparison, Condition, OneOf, Scalar


@dataclass(frozen=True, slots=True)
class Option:
    """One of the meanings of a condition.

    Attributes:
        column: The column it is about; empty if it is about several.
    """

    column: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class Cond:
    """Condition of a request.

    Attributes:
        options: Its meanings; more than one if its column is not clear.
        is_time: Whether it restricts the time.
        is_list: Whether it lists values with ``and``.
        is_span: Whether it lists parts of the calendar.
        is_negative: Whether it holds a negation.
        is_bare: Whether it consists of values, without the name of the column.
        unused: Words inside that were skipped.
    """

    options: tuple[Option, ...]
    phrase: str
    is_time: bool = False
    is_list: bool = False
    is_span: bool = False
    is_negative: bool = False
    is_bare: bool = False
    unused: tuple[str, ...] = ()


Found = tuple[int, Cond, float]
"""Condition of some tokens, with the place after them and its cost."""


def conjunction(*conditions: Condition | None) -> Condition | None:
    """Return the conjunction of some conditions; None if there are none."""
    parts: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, And):
            parts += condition.parts
        elif condition is not None:
            parts.append(condition)
    parts = list(dict.fromkeys(parts))
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(tuple(parts))


def one_of(name: str, values: tuple[Scalar, ...]) -> Condition:
    """Return the condition that a column has one of some values."""
    return Comparison(Column(name), "==", values[0]) if len(values) == 1 else OneOf(name, values)


def both(left: Condition, right: Condition) -> Condition:
    """Return the conjunction of two conditions."""
    return conjunction(left, right) or left


def shares_column(left: Cond, right: Cond) -> bool:
    """Return whether two conditions may be about the same column."""
    names = {option.column for option in left.options}
    return bool(names & {option.column for option in right.options} - {""})
