"""Expressions, measures and conditions in words."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby

from taskweaver.analyst.readings import (
    And,
    Arithmetic,
    Column,
    Comparator,
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
)
from taskweaver.analyst.wording.inert import column_name, listed, number_text, value_text

_FUNCTIONS: dict[Function, str] = {
    "count": "number of values of",
    "nunique": "number of distinct",
    "sum": "sum of",
    "mean": "mean of",
    "median": "median of",
    "min": "minimum of",
    "max": "maximum of",
    "std": "standard deviation of",
    "var": "variance of",
    "range": "range of",
    "iqr": "interquartile range of",
    "mode": "most frequent value of",
    "missing": "number of missing values of",
}
_ORDINALS = {1: "", 2: "second ", 3: "third ", 4: "fourth ", 5: "fifth "}
_PARTS = {
    "quarter": "quarter of the year",
    "month": "calendar month",
    "weekday": "weekday",
    "day": "day of the month",
    "hour": "hour of the day",
    "decade": "decade",
}


def expression_words(expression: Expression) -> str:
    """Return an expression as it is written in a request, columns in back quotes."""
    match expression:
        case Column(name):
            return column_name(name)
        case Constant(value):
            return number_text(value)
        case Arithmetic(operator, left, right):
            return f"{_operand(left)} {operator} {_operand(right)}"


def _operand(expression: Expression) -> str:
    text = expression_words(expression)
    return f"({text})" if isinstance(expression, Arithmetic) else text


def measure_words(measure: Measure) -> str:
    """Return a measure in words: ``mean of `lifeExp` ``."""
    if measure.of is None:
        return "number of missing values" if measure.function == "missing" else "number of rows"
    of = expression_words(measure.of)
    match measure.function:
        case "correlation":
            other = expression_words(measure.other) if measure.other else of
            return f"correlation of {of} and {other}"
        case _:
            return f"{function_words(measure)} {of}"


def function_words(measure: Measure) -> str:
    """Return the function of a measure in words, up to its column: ``mean of``."""
    match measure.function:
        case "percentile":
            return f"{_ordinal(100 * measure.quantile)} percentile of"
        case "nth":
            extreme = "smallest" if measure.n < 0 else "largest"
            return f"{ordinal_words(abs(measure.n))}{extreme} value of"
        case "correlation":
            return "correlation of"
        case function:
            return _FUNCTIONS[function]


def measures_words(measures: tuple[Measure, ...]) -> str:
    """Return measures in words; neighbours with one function, or of one column, are joined."""
    if len(measures) > 1 and all(measure.of is not None for measure in measures):
        if len({measure.of for measure in measures}) == 1 and measures[0].of is not None:
            names = [function_words(measure).removesuffix(" of") for measure in measures]
            return f"{listed(names)} of {expression_words(measures[0].of)}"
        if "correlation" not in {measure.function for measure in measures}:
            return listed(
                [_same_function(list(group)) for _, group in groupby(measures, function_words)]
            )
    return listed([measure_words(measure) for measure in measures])


def _same_function(measures: list[Measure]) -> str:
    columns = [expression_words(measure.of) for measure in measures if measure.of is not None]
    return f"{function_words(measures[0])} {listed(columns)}"


def ordinal_words(number: int) -> str:
    """Return an ordinal before a superlative, with a space: ``second ``; empty for the first."""
    return _ORDINALS.get(number, f"{_ordinal(number)} ")


def _ordinal(number: float) -> str:
    text = f"{number:.6g}"
    is_teen = text[-2:] in {"11", "12", "13"}
    return text + ("th" if is_teen else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th"))


def key_words(key: GroupKey) -> str:
    """Return a group key in words: ``month of `date` ``."""
    if key.unit:
        return f"{key.unit} of {column_name(key.column)}"
    if key.part:
        return f"{_PARTS[key.part]} of {column_name(key.column)}"
    return column_name(key.column)


def keys_words(keys: tuple[GroupKey, ...]) -> str:
    """Return group keys as a list in words."""
    return listed([key_words(key) for key in keys])


MONTHS = (
    "January February March April May June July August September October November December"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_COMPARATORS: dict[Comparator, str] = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}
_INVERSE: dict[Comparator, Comparator] = {
    "==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip


def condition_words(condition: Condition) -> str:
    """Return a condition in words, on one line."""
    match condition:
        case And(parts):
            text = " and ".join(_nested(part) for part in parts)
        case Or(parts):
            text = " or ".join(_nested(part) for part in parts)
        case Not(part):
            text = _negated(part)
        case During() | OnCalendar() | Latest():
            text = f"{column_name(condition.column)} is {_time(condition)}"
        case _:
            text = _of_values(condition)
    return text


def inverted(comparison: Comparison) -> Comparison:
    """Return the comparison that holds where this one does not, except for missing values."""
    return Comparison(comparison.left, _INVERSE[comparison.operator], comparison.right)


def _of_values(condition: Comparison | OneOf | Contains | Missing) -> str:
    match condition:
        case Comparison(left, operator, right):
            if isinstance(right, Column | Constant | Arithmetic):
                other = expression_words(right)
            else:
                other = value_text(right)
            return f"{expression_words(left)} {_COMPARATORS[operator]} {other}"
        case OneOf(column, values):
            return f"{column_name(column)} is {_values(values, 'or')}"
        case Contains(column, part):
            return f"{column_name(column)} contains {value_text(part)}"
        case Missing(column):
            return f"{column_name(column)} is missing" if column else "any value is missing"


def _values(values: tuple[str | int | float | bool, ...], word: str) -> str:
    return listed([value_text(value) for value in values], word) if values else "one of nothing"


def _nested(condition: Condition) -> str:
    is_plain = not isinstance(condition, And | Or | Not | OneOf | OnCalendar) or (
        isinstance(condition, Not) and not isinstance(condition.part, And | Or | OneOf)
    )
    is_plain = is_plain or (isinstance(condition, OneOf | OnCalendar) and len(condition.values) < 2)
    text = condition_words(condition)
    return text if is_plain else f"({text})"


def _negated(part: Condition) -> str:
    match part:
        case Comparison():
            text = condition_words(inverted(part))
        case OneOf(column, (_, _, *_) as values):
            text = f"{column_name(column)} is neither {_values(tuple(values), 'nor')}"
        case OneOf(column, values):
            text = f"{column_name(column)} is not {_values(values, 'nor')}"
        case Contains(column, text):
            text = f"{column_name(column)} does not contain {value_text(text)}"
        case Missing(column):
            text = f"{column_name(column)} is not missing" if column else "all values are present"
        case During() | Latest():
            text = f"{column_name(part.column)} is not {_time(part)}"
        case _:
            text = f"not ({condition_words(part)})"
    return text


def _time(condition: During | OnCalendar | Latest) -> str:
    match condition:
        case During(_, start, end):
            return during_words(start, end)
        case Latest(_, count, unit):
            return f"in the last {count} {unit}s" if count != 1 else f"in the last {unit}"
        case OnCalendar(_, part, values):
            return _on_calendar(part, values)


def _on_calendar(part: str, values: tuple[int, ...]) -> str:
    match part:
        case "month":
            return "in " + listed([_entry(MONTHS, value - 1) for value in values], "or")
        case "weekday":
            return "on a " + listed([_entry(WEEKDAYS, value) for value in values], "or")
        case "quarter":
            return "in " + listed([f"Q{value} of any year" for value in values], "or")
        case "hour":
            return "in hour " + listed([str(value) for value in values], "or")
        case _:
            return "on day " + listed([str(value) for value in values], "or") + " of the month"


def _entry(names: list[str], at: int) -> str:
    return names[at] if 0 <= at < len(names) else f"number {at}"


def during_words(start: str, end: str) -> str:
    """Return a time span in words: ``in 2014``, ``from 2014-06-01 to 2014-08-31``."""
    first, last = _moment(start), _moment(end)
    if first is None or last is None:
        since, before = _plain(start, first), _plain(end, last)
        if since and before:
            return f"from {since} up to {before}"
        return f"{since} or later" if since else f"before {before}" if before else "at any time"
    whole = whole_unit(first, last)
    if whole:
        return whole
    if not (_is_midnight(first) and _is_midnight(last)):
        return f"from {_plain(start, first)} up to {_plain(end, last)}"
    return f"from {first:%Y-%m-%d} to {last - timedelta(days=1):%Y-%m-%d}"


def whole_unit(first: datetime, last: datetime) -> str:
    """Return the year, quarter, month or day that a span is; empty for none."""
    if not (_is_midnight(first) and _is_midnight(last)):
        return ""
    if last - first == timedelta(days=1):
        return f"on {first:%Y-%m-%d}"
    months = 12 * (last.year - first.year) + last.month - first.month
    if first.day != 1 or last.day != 1:
        return ""
    if months == 12 and first.month == 1:
        return f"in {first.year}"
    if months == 3 and first.month % 3 == 1:
        return f"in Q{(first.month + 2) // 3} {first.year}"
    return f"in {MONTHS[first.month - 1]} {first.year}" if months == 1 else ""


def _is_midnight(moment: datetime) -> bool:
    return not (moment.hour or moment.minute or moment.second or moment.microsecond)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def _plain(text: str, moment: datetime | None) -> str:
    if moment is None:
        return value_text(text) if text else ""
    return f"{moment:%Y-%m-%d}" if _is_midnight(moment) else f"{moment:%Y-%m-%d %H:%M}"
