"""Measures and group keys as pandas code."""

from __future__ import annotations

from taskweaver.analyst.code.conditions import expression_code, part_code, series_code
from taskweaver.analyst.code.frames import Frame
from taskweaver.analyst.readings.condition import Column, Unit, columns_of
from taskweaver.analyst.readings.reading import Function, GroupKey, Measure
from taskweaver.analyst.wording.calendar import MONTHS, WEEKDAYS
from taskweaver.analyst.wording.conditions import WEEKDAYS as DAY_NAMES
from taskweaver.analyst.wording.expressions import measure_words

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
