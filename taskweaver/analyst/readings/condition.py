"""Expressions and conditions on the rows of a table, as typed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# -- values of a row ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """Value of a column."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """Number written in the request."""

    value: float


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic of two expressions."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


Expression = Column | Constant | Arithmetic
Scalar = str | int | float | bool

# -- conditions on a row --------------------------------------------------------------------------

Comparator = Literal["==", "!=", "<", "<=", ">", ">="]
Unit = Literal["year", "quarter", "month", "week", "day", "hour"]
CalendarPart = Literal["quarter", "month", "weekday", "day", "hour"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison with a scalar or another expression; an integer year column included."""

    left: Expression
    operator: Comparator
    right: Scalar | Expression


@dataclass(frozen=True, slots=True)
class OneOf:
    """Membership of a column's value in a set of values."""

    column: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Contains:
    """Occurrence of a text in a column's value, without regard to case."""

    column: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing value in a column, or in any column if the name is empty."""

    column: str = ""


@dataclass(frozen=True, slots=True)
class During:
    """Time from `start` up to, and without, `end` (ISO 8601; empty for open); time columns."""

    column: str
    start: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class OnCalendar:
    """Part of the calendar in any year: months 1-12, weekdays 0 (Monday)-6, quarters 1-4."""

    column: str
    part: CalendarPart
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Latest:
    """Last `count` units before the column's largest value; for an integer year, years."""

    column: str
    count: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class And:
    """All of some conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of some conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation, as in pandas: a row whose value is missing satisfies it."""

    part: Condition


Condition = Comparison | OneOf | Contains | Missing | During | OnCalendar | Latest | And | Or | Not


def columns_of(expression: Expression | None) -> tuple[str, ...]:
    """Return the columns of an expression, each as often as it occurs."""
    match expression:
        case Column(name):
            return (name,)
        case Arithmetic(_, left, right):
            return (*columns_of(left), *columns_of(right))
        case _:
            return ()


def columns_in(condition: Condition) -> set[str]:
    """Return the columns of a condition; the empty name stands for any column."""
    match condition:
        case And(parts) | Or(parts):
            return set().union(*map(columns_in, parts))
        case Not(part):
            return columns_in(part)
        case Comparison(left, _, right):
            others = columns_of(right) if isinstance(right, Column | Arithmetic) else ()
            return {*columns_of(left), *others}
        case _:
            return {condition.column}
