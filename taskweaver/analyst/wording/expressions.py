"""Expressions, measures and group keys in words."""

from __future__ import annotations

from itertools import groupby

from taskweaver.analyst.readings.condition import Arithmetic, Column, Constant, Expression
from taskweaver.analyst.readings.reading import Function, GroupKey, Measure
from taskweaver.analyst.wording.inert import column_name, listed, number_text

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
