"""Rows, and views of a table as it is, as pandas code."""

from __future__ import annotations

from taskweaver.analyst.code.charts import rows_chart
from taskweaver.analyst.code.conditions import expression_code
from taskweaver.analyst.code.frames import RESULT, Frame, ranked_code
from taskweaver.analyst.readings.condition import Column
from taskweaver.analyst.readings.reading import Rank, Rows, TableView
from taskweaver.analyst.wording.expressions import expression_words
from taskweaver.analyst.wording.requests import DEFAULT_ROWS


def rows_code(reading: Rows, frame: Frame) -> list[str]:
    """Return the lines after the choice of rows; the last is the table or picture."""
    lines, frame, by = _ordered_by(reading, frame)
    order = _order(reading, frame, by)
    if reading.chart:
        rank = reading.rank
        if rank is not None and (rank.count is not None or rank.nth) and order != frame.name:
            lines.append(f"{RESULT} = {order}")
            frame = Frame(RESULT, frame.columns)
        return [*lines, *rows_chart(reading, frame)]
    shown = dict.fromkeys(reading.columns)
    picked = f"[{list(dict.fromkeys([*shown, *([by] if by else [])]))!r}]" if shown else ""
    return [*lines, f"{RESULT} = {order}{picked}", RESULT]


def _ordered_by(reading: Rows, frame: Frame) -> tuple[list[str], Frame, str]:
    """Return the column that rows are ordered by, empty for none, and the code that makes it."""
    if reading.by is None or isinstance(reading.by, Column):
        return [], frame, reading.by.name if reading.by else ""
    label = expression_words(reading.by).replace("`", "")
    while label in frame.columns:
        label += "_"
    made = f"{frame.name}.assign(**{{{label!r}: {expression_code(reading.by, frame)}}})"
    return [f"{RESULT} = {made}"], Frame(RESULT, frame.columns), label


def _order(reading: Rows, frame: Frame, by: str) -> str:
    rank = reading.rank or Rank(ascending=True, count=None if reading.chart else DEFAULT_ROWS)
    name, end = frame.name, "tail" if reading.from_end else "head"
    if not by:
        if rank.nth:
            place = f"-{rank.nth}:][:1" if reading.from_end else f"{rank.nth - 1}:{rank.nth}"
            return f"{name}.iloc[{place}]"
        return name if rank.count is None else f"{name}.{end}({rank.count})"
    is_sorted = reading.rank is None or frame.kind(by) == "text" or reading.from_end
    return ranked_code(name, by, rank, is_sorted=is_sorted, end=end)


def inspection_code(reading: TableView, frame: Frame) -> list[str]:
    """Return the lines that show a view of a table."""
    columns, name = list(reading.columns), frame.name
    picked = f"{name}[{columns!r}]" if columns else name
    match reading.view:
        case "values":
            return _distinct(columns, frame)
        case "outliers":
            return _outliers(columns, frame)
        case "columns":
            types = f"'type': {picked}.dtypes.astype(str), 'missing': {picked}.isna().sum()"
            return [f"pd.DataFrame({{{types}, 'distinct': {picked}.nunique()}})"]
        case "missing" if len(columns) == 1:
            return [f"{frame.column(columns[0])}.isna().sum()"]
    return [_view(reading, picked, frame, is_whole=not columns)]


def _view(reading: TableView, picked: str, frame: Frame, *, is_whole: bool) -> str:
    ordered = [name for name, profile in frame.columns.items() if profile.kind != "text"]
    spanned = f"{picked}[{ordered!r}]" if is_whole and ordered else picked
    views = {
        "describe": f"{picked}.describe({'include=' + repr('all') if is_whole else ''})",
        "sample": f"{picked}.sample(min({reading.count}, len({frame.name})), random_state=0)",
        "missing": f"{picked}.isna().sum().to_frame('missing')",
        "correlations": f"{picked}.corr(numeric_only=True)",
        "span": f"pd.DataFrame({{'from': {spanned}.min(), 'to': {spanned}.max()}})",
        "shape": f"{picked}.shape",
        "duplicates": f"{picked}.duplicated().sum()",
    }
    return views[reading.view]


def _distinct(columns: list[str], frame: Frame) -> list[str]:
    if not columns:
        return [f"{frame.name}.nunique().to_frame('distinct')"]
    if len(columns) == 1:
        counted = f"{frame.column(columns[0])}.value_counts(dropna=False).to_frame('rows')"
    else:
        counted = f"{frame.name}[{columns!r}].value_counts(dropna=False).reset_index(name='rows')"
    return [f"{RESULT} = {counted}", RESULT]


def _outliers(columns: list[str], frame: Frame) -> list[str]:
    """Return the rows further than 1.5 interquartile ranges from the quartiles."""
    numbers = [
        name for name, column in frame.columns.items() if column.kind in {"number", "integer"}
    ]
    first, third = "values.quantile(0.25)", "values.quantile(0.75)"
    lowest, highest = f"2.5 * {first} - 1.5 * {third}", f"2.5 * {third} - 1.5 * {first}"
    check = f"lambda values: (values < {lowest}) | (values > {highest})"
    chosen = f"{frame.name}[{(columns or numbers)!r}].apply({check}).any(axis=1)"
    return [
        "# further than 1.5 interquartile ranges from the quartiles",
        f"{RESULT} = {frame.name}[{chosen}]",
        f"print('rows used:', len({RESULT}))",
        RESULT,
    ]
