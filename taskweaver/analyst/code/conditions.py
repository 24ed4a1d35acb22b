"""Code of conditions and of the measures of a group."""

from __future__ import annotations

import math
from datetime import datetime

from taskweaver.analyst.code.frames import Frame
from taskweaver.analyst.readings import (
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
    Function,
    GroupKey,
    Latest,
    Measure,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    Scalar,
    Unit,
    columns_of,
)
from taskweaver.analyst.wording.conditions import WEEKDAYS as DAY_NAMES
from taskweaver.analyst.wording.conditions import inverted, measure_words
from taskweaver.analyst.wording.inert import MONTHS, WEEKDAYS, number_text

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


PERIODS: dict[Unit, str] = {
    "year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h",
}  # fmt: skip
_KIND_RANKS = {"time": 0, "integer": 1, "number": 1}
_METHODS = frozenset("count nunique sum mean median min max std var".split())
"""Functions that are methods of pandas with the same name."""


def measured_columns(measure: Measure) -> tuple[str, ...]:
    """Return the columns of a measure, each once."""
    return tuple(dict.fromkeys([*columns_of(measure.of), *columns_of(measure.other)]))


def label_of(measure: Measure) -> str:
    """Return the heading of the column that holds a measure."""
    return measure_words(measure).replace("`", "")


def value_code(measure: Measure, frame: Frame, where: str = "") -> str:
    """Return the code of a measure of all rows of a frame, or of those where a condition holds."""
    rows = f"{frame.name}[{where}]" if where else frame.name
    if measure.of is None:
        return f"{rows}.isna().sum().sum()" if measure.function == "missing" else f"len({rows})"
    series = series_code(measure.of, frame) + (f"[{where}]" if where else "")
    if measure.function == "correlation":
        return f"{series}.corr({expression_code(measure.other or measure.of, frame)})"
    return of_series(measure, series, frame)


def of_series(measure: Measure, series: str, frame: Frame) -> str:
    """Return the code of a measure of a series; parentheses stand around a difference.

    A sum of missing values alone is missing, not 0.
    """
    lacking = {name for name, column in frame.columns.items() if column.missing}
    if measure.function == "sum" and not lacking.isdisjoint(measured_columns(measure)):
        return f"{series}.sum(min_count=1)"
    n = max(abs(measure.n), 1)
    end, last = ("nsmallest", "min") if measure.n < 0 else ("nlargest", "max")
    special: dict[Function, str] = {
        "range": f"({series}.max() - {series}.min())",
        "iqr": f"({series}.quantile(0.75) - {series}.quantile(0.25))",
        "percentile": f"{series}.quantile({measure.quantile!r})",
        "mode": f"{series}.mode().astype(str).str.cat(sep=', ')",
        "nth": f"{series}.drop_duplicates().{end}({n}).iloc[{n - 1}:].{last}()",
        "missing": f"{series}.isna().sum()",
    }
    return special.get(measure.function) or f"{series}.{measure.function}()"


def groups_code(measure: Measure, keys: tuple[GroupKey, ...], frame: Frame, where: str = "") -> str:
    """Return the code of a measure of each group: a series over the groups.

    `where` is the code of a condition that a value must satisfy to count; empty for none.
    """
    if measure.of is None:
        return _row_counts(measure, keys, frame, where)
    if measure.function == "correlation":
        return _correlation(measure, keys, frame, where)
    if isinstance(measure.of, Column) and not where:
        grouped = f"{frame.name}.groupby({keys_code(keys, frame)})[{measure.of.name!r}]"
    else:
        series = series_code(measure.of, frame) + (f".where({where})" if where else "")
        grouped = f"{series}.groupby({keys_code(keys, frame, is_series=True)})"
    if measure.function in _METHODS or measure.function == "percentile":
        return of_series(measure, grouped, Frame("", {}) if where else frame)
    body = of_series(measure, "values", frame)
    is_in_parentheses = measure.function in {"range", "iqr"}
    return f"{grouped}.agg(lambda values: {body[1:-1] if is_in_parentheses else body})"


def _row_counts(measure: Measure, keys: tuple[GroupKey, ...], frame: Frame, where: str) -> str:
    if measure.function == "missing":
        series = f"{frame.name}.isna().sum(axis=1)"
    elif where:
        series = f"({where})"
    else:
        return f"{frame.name}.groupby({keys_code(keys, frame)}).size()"
    return f"{series}.groupby({keys_code(keys, frame, is_series=True)}).sum()"


def _correlation(measure: Measure, keys: tuple[GroupKey, ...], frame: Frame, where: str) -> str:
    rows = f"{frame.name}[{where}]" if where else frame.name
    grouped = f"{rows}.groupby({keys_code(keys, frame)})[{list(measured_columns(measure))!r}]"
    value = value_code(measure, Frame("group", frame.columns))
    return f"{grouped}.apply(lambda group: {value})"


def keys_code(keys: tuple[GroupKey, ...], frame: Frame, *, is_series: bool = False) -> str:
    """Return the argument of ``groupby``; columns are series where an expression is grouped."""
    names = key_names(keys)
    codes = [_key(key, name, frame, is_series) for key, name in zip(keys, names, strict=True)]
    return codes[0] if len(codes) == 1 else f"[{', '.join(codes)}]"


def _key(key: GroupKey, name: str, frame: Frame, is_series: bool) -> str:  # noqa: FBT001 - private
    series = frame.column(key.column)
    if key.unit:
        profile = frame.columns.get(key.column)
        is_zoned = profile is not None and profile.low.endswith(("+00:00", "Z"))
        naive = ".dt.tz_localize(None)" if is_zoned else ""
        code = f"{series}{naive}.dt.to_period({PERIODS[key.unit]!r})"
    elif key.part == "decade":
        years = series if frame.kind(key.column) == "integer" else f"{series}.dt.year"
        code = f"{years}.floordiv(10).mul(10).astype('Int64')"
    elif key.part:
        is_named = key.part == "weekday"
        code = f"{series}.dt.day_name()" if is_named else part_code(series, key.part)
    else:
        code = series if is_series or name != key.column else repr(key.column)
    return code if name == key.column else f"{code}.rename({name!r})"


def key_names(keys: tuple[GroupKey, ...]) -> list[str]:
    """Return the heading of each key, all different."""
    names: list[str] = []
    for key in keys:
        name = key.part or key.column
        if name in names:
            name = f"{key.unit or 'value'} of {key.column}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def calendar_order(key: GroupKey, frame: Frame) -> list[str]:
    """Return the names of months or weekdays of a key in the order of the calendar; else none."""
    if key.part == "weekday":
        return DAY_NAMES
    profile = frame.columns.get(key.column)
    values = (profile.values if profile and not key.part else None) or ()
    names = {value: value.strip(" .").casefold() for value in values}
    for places in (MONTHS, WEEKDAYS):
        if len(names) > 1 and places.keys() >= set(names.values()):
            return sorted(names, key=lambda value: places[names[value]])
    return []


def order_key(keys: tuple[GroupKey, ...], frame: Frame) -> int:
    """Return the position of the key in order of time: a period, a time column or a number."""
    ranks = [
        0 if key.unit or key.part else _KIND_RANKS.get(frame.kind(key.column) or "text", 2)
        for key in keys
    ]
    return ranks.index(min(ranks)) if ranks else 0
