"""Expressions and conditions as pandas code.

Missing values are pandas' own: a comparison with one does not hold, so that *is not* and *not*
hold for it. The exception is the negation of an order: *not more than 5* is *at most 5*, which
does not hold for a missing value. Answers name the missing values of columns that are negated.
"""

from __future__ import annotations

import math
from datetime import datetime

from taskweaver.analyst.code.frames import Frame
from taskweaver.analyst.readings.condition import (
    And,
    Arithmetic,
    CalendarPart,
    Column,
    Comparison,
    Condition,
    Constant,
    Contains,
    During,
    Expression,
    Latest,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    Scalar,
)
from taskweaver.analyst.wording.conditions import inverted
from taskweaver.analyst.wording.inert import number_text

_TIGHTNESS = {"+": 1, "-": 1, "*": 2, "/": 2}
_MOST_CHARS = 88


def expression_code(expression: Expression, frame: Frame) -> str:
    """Return the code of an expression."""
    match expression:
        case Column(name):
            return frame.column(name)
        case Constant(value):
            return scalar_code(value)
        case Arithmetic(operator, left, right):
            first = _operand(left, operator, frame, is_right=False)
            return f"{first} {operator} {_operand(right, operator, frame, is_right=True)}"


def _operand(expression: Expression, operator: str, frame: Frame, *, is_right: bool) -> str:
    code = expression_code(expression, frame)
    if isinstance(expression, Arithmetic):
        inner, outer = _TIGHTNESS[expression.operator], _TIGHTNESS[operator]
        return f"({code})" if inner < outer or (is_right and inner == outer) else code
    return f"({code})" if code.startswith("-") else code


def series_code(expression: Expression, frame: Frame) -> str:
    """Return the code of an expression as the start of a method call."""
    code = expression_code(expression, frame)
    return code if isinstance(expression, Column) else f"({code})"


def scalar_code(value: Scalar) -> str:
    """Return the literal of a value."""
    if isinstance(value, bool | str):
        return repr(value)
    return number_text(value) if math.isfinite(value) else f"float({str(value)!r})"


def chosen_code(condition: Condition, frame: Frame) -> str:
    """Return the code of the rows of a frame that satisfy a condition."""
    code = f"{frame.name}[{condition_code(condition, frame)}]"
    if len(code) <= _MOST_CHARS or not isinstance(condition, And | Or):
        return code
    parts = [_term(part, frame) for part in condition.parts]
    mark = "&" if isinstance(condition, And) else "|"
    return f"{frame.name}[\n    " + f"\n    {mark} ".join(parts) + "\n]"


def condition_code(condition: Condition, frame: Frame) -> str:
    """Return the code of a condition: a boolean series over the rows of a frame."""
    match condition:
        case And(parts):
            return " & ".join(_term(part, frame) for part in parts)
        case Or(parts):
            return " | ".join(_term(part, frame) for part in parts)
        case Not(part):
            return _negated(part, frame)
        case During() | OnCalendar() | Latest():
            return _time(condition, frame)
        case _:
            return _of_values(condition, frame)


def _of_values(condition: Comparison | OneOf | Contains | Missing, frame: Frame) -> str:
    match condition:
        case Comparison(left, operator, right):
            if isinstance(right, Column | Constant | Arithmetic):
                other = expression_code(right, frame)
            else:
                other = scalar_code(right)
            return f"{expression_code(left, frame)} {operator} {other}"
        case OneOf(column, values):
            return _one_of(frame.column(column), [scalar_code(value) for value in values])
        case Contains(column, text):
            options = "case=False, regex=False, na=False"
            return f"{frame.column(column)}.str.contains({text!r}, {options})"
        case Missing(column):
            is_missing = f"{frame.column(column)}.isna()" if column else ""
            return is_missing or f"{frame.name}.isna().any(axis=1)"


def _one_of(series: str, values: list[str]) -> str:
    if len(values) == 1:
        return f"{series} == {values[0]}"
    return f"{series}.isin([{', '.join(values)}])"


def _term(condition: Condition, frame: Frame) -> str:
    """Return a condition as an operand of ``&``, ``|`` or ``~``."""
    code = condition_code(condition, frame)
    match condition:
        case Contains() | Missing() | Not(Missing() | Contains()):
            return code
        case OneOf(_, values) | OnCalendar(_, _, values) if len(values) != 1:
            return code
        case _:
            return f"({code})"


def _negated(part: Condition, frame: Frame) -> str:
    match part:
        case Comparison():
            return condition_code(inverted(part), frame)
        case OneOf(column, (value,)):
            return f"{frame.column(column)} != {scalar_code(value)}"
        case Missing(column):
            is_present = f"{frame.column(column)}.notna()" if column else ""
            return is_present or f"{frame.name}.notna().all(axis=1)"
        case Not(inner):
            return condition_code(inner, frame)
        case _:
            return f"~{_term(part, frame)}"


def _time(condition: During | OnCalendar | Latest, frame: Frame) -> str:
    series = frame.column(condition.column)
    match condition:
        case During(_, start, end):
            return _during(series, start, end)
        case OnCalendar(_, part, values):
            return _one_of(part_code(series, part), [str(value) for value in values])
        case Latest(column, count, unit):
            if frame.kind(column) in {"integer", "number"}:
                return f"{series} > {series}.max() - {count}"
            name, factor = ("months", 3) if unit == "quarter" else (f"{unit}s", 1)
            return f"{series} > {series}.max() - pd.DateOffset({name}={count * factor})"


def part_code(series: str, part: CalendarPart) -> str:
    """Return the code of the numbers of a part of the calendar."""
    return f"{series}.dt.{'day_of_week' if part == 'weekday' else part}"


def _during(series: str, start: str, end: str) -> str:
    year = _whole_year(start, end)
    if year:
        return f"{series}.dt.year == {year}"
    parts = [
        f"{series} {operator} {text!r}" for operator, text in ((">=", start), ("<", end)) if text
    ]
    return (
        " & ".join(f"({part})" for part in parts)
        if len(parts) > 1
        else (parts or [f"{series}.notna()"])[0]
    )


def _whole_year(start: str, end: str) -> int:
    try:
        first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    except ValueError:
        return 0
    is_year = first == datetime(first.year, 1, 1, tzinfo=first.tzinfo)
    is_next = last == datetime(min(first.year + 1, 9999), 1, 1, tzinfo=last.tzinfo)
    return first.year if is_year and is_next else 0


def negated_columns(condition: Condition | None, *, is_negated: bool = False) -> set[str]:
    """Return the columns whose missing values satisfy a condition by its negations."""
    match condition:
        case And(parts) | Or(parts):
            inner = [negated_columns(part, is_negated=is_negated) for part in parts]
            return set().union(*inner)
        case Not(part):
            return negated_columns(part, is_negated=not is_negated)
        case Comparison(left, operator, right):
            holds = (operator == "!=") != (is_negated and operator in {"==", "!="})
            sides = (left, right) if holds else ()
            return {side.name for side in sides if isinstance(side, Column)}
        case OneOf() | Contains() | During() | OnCalendar() | Latest() if is_negated:
            return {condition.column}
        case _:
            return set()
