"""Readings in words: requests that have only one meaning.

The words are the first line of an answer, the order to the code writer and the title of a
picture. Columns stand in back quotes, so that the words are read back as they are meant.
"""

from __future__ import annotations

from taskweaver.analyst.readings import (
    About,
    Calculation,
    Column,
    Condition,
    Contrast,
    Cumulative,
    FileListing,
    Help,
    PeriodChange,
    Python,
    Rank,
    Reading,
    Rows,
    Saved,
    Share,
    Sql,
    Summary,
    TableSource,
    TableView,
    View,
)
from taskweaver.analyst.wording.conditions import (
    condition_words,
    expression_words,
    keys_words,
    measure_words,
    measures_words,
    ordinal_words,
)
from taskweaver.analyst.wording.inert import column_name, column_names, value_text

_CHARTS = {
    "line": "line chart",
    "bar": "bar chart",
    "pie": "pie chart",
    "histogram": "histogram",
    "box": "box plot",
    "scatter": "scatter plot",
}
DEFAULT_ROWS = 20


def in_words(reading: Reading) -> str:
    """Return a reading in words, on one line, without a capital and without a full stop."""
    text = "help"
    match reading:
        case Summary():
            text = _summary(reading)
        case Rows():
            text = _chart_of_rows(reading) if reading.chart else _rows(reading)
        case TableView():
            text = _inspection(reading) + _source(reading.source) + where_words(reading.where)
        case Saved(of, file):
            text = f"{in_words(of)}, saved as {column_name(file)}"
        case FileListing():
            text = "files"
        case Sql(file):
            text = f"result of the SQL query on {column_name(file)}"
        case Python():
            text = "your code"
        case Calculation(expression):
            text = value_text(expression).strip('`"')
        case Help() | About():
            pass
    return text


def shown_kind(reading: Reading) -> str:
    """Return the kind of a reading's answer: number, table, rows, or the name of its picture."""
    match reading:
        case Summary(chart=chart) | Rows(chart=chart) if chart:
            return _CHARTS[chart]
        case Summary(keys=()):
            return "number"
        case Rows():
            return "rows"
    return "table"


def where_words(where: Condition | None) -> str:
    """Return a condition with ``where`` before it; empty for none."""
    return f" where {condition_words(where)}" if where is not None else ""


def _source(source: TableSource) -> str:
    if len(source.tables) < 2:
        return ""
    return f" in {column_names(table.part or table.file for table in source.tables)}"


def _summary(reading: Summary) -> str:
    is_ranked = reading.rank is not None or reading.names_winner
    text = _ranked(reading) if is_ranked else _then(reading, _per(reading))
    text += _source(reading.source)
    where = where_words(reading.where)
    if where and isinstance(reading.then, Contrast):
        where = f", all{where}"  # it joins neither side
    if where and isinstance(reading.then, Share) and reading.then.part is not None:
        text, where = f"among rows{where}, {text}", ""
    text += where
    return f"{_CHARTS[reading.chart]} of {text}" if reading.chart else text


def _per(reading: Summary) -> str:
    return f" per {keys_words(reading.keys)}" if reading.keys else ""


def _then(reading: Summary, per: str) -> str:
    """Return the measure after its step, with the groups."""
    measure = measure_words(reading.measures[0])
    text = f"{measures_words(reading.measures)}{per}"
    match reading.then:
        case Share(part):
            text = _share(part, measure, per)
        case Contrast(first, second, is_relative):
            kind = "relative difference in percent" if is_relative else "difference"
            sides = f"{_side(first)} and {_side(second)}"
            text = f"{kind} of the {measure}{per} between {sides}"
        case PeriodChange(is_relative):
            kind = "relative change in percent" if is_relative else "change"
            text = f"{kind} of the {measure}{per}"
        case Cumulative():
            text = f"cumulative {measure}{per}"
    return text


def _share(part: Condition | None, measure: str, per: str) -> str:
    if part is None:
        return f"share of the {measure}{per}, in percent"
    if measure == "number of rows":
        return f"share of rows{per} in percent where {condition_words(part)}"
    return f"share of the {measure}{per} in percent that has {condition_words(part)}"


def _side(condition: Condition) -> str:
    text = condition_words(condition)
    return f"({text})" if " and " in text or " or " in text else text


def _ranked(reading: Summary) -> str:
    rank = reading.rank or Rank(count=1)
    plain = _then(reading, "")
    keys = keys_words(reading.keys) or "rows"
    extreme = "smallest" if rank.ascending else "largest"
    if rank.nth:
        return f"{keys} with the {ordinal_words(rank.nth)}{extreme} {plain}"
    if reading.names_winner and rank.count in {None, 1}:
        return f"{keys} with the {extreme} {plain}"
    if rank.count is None:
        return f"{_then(reading, _per(reading))}, {extreme} first"
    return f"{'bottom' if rank.ascending else 'top'} {rank.count} {keys} by {plain}"


def _rows(reading: Rows) -> str:
    subject = f"{column_names(reading.columns)} of " if reading.columns else ""
    picked = _ordered_rows(reading) if reading.by is not None else _rows_of_file(reading)
    return f"{subject}{picked}{_source(reading.source)}{where_words(reading.where)}"


def _rows_of_file(reading: Rows) -> str:
    rank, place = reading.rank, "last" if reading.from_end else "first"
    if rank is not None and rank.nth:
        return f"row {rank.nth} from the {'end' if reading.from_end else 'start'}"
    count = DEFAULT_ROWS if rank is None else rank.count
    is_whole = count is None or (rank is None and not reading.from_end)
    return "rows" if is_whole else f"{place} {count} rows"


def _ordered_rows(reading: Rows) -> str:
    rank, by = reading.rank, expression_words(reading.by or Column(""))
    if rank is None:
        last = f"last {DEFAULT_ROWS} " if reading.from_end else ""
        return f"{last}rows in order of {by}"
    extreme = "smallest" if rank.ascending else "largest"
    if rank.nth or rank.count == 1:
        return f"row with the {ordinal_words(rank.nth) if rank.nth else ''}{extreme} {by}"
    if rank.count is None:
        return f"rows by {by}, {extreme} first"
    return f"{'bottom' if rank.ascending else 'top'} {rank.count} rows by {by}"


def _chart_of_rows(reading: Rows) -> str:
    across = reading.by.name if isinstance(reading.by, Column) else ""
    columns = [name for name in reading.columns if name != across]
    if reading.chart == "scatter" and len(columns) > 1:
        of = f"{column_name(columns[1])} against {column_name(columns[0])}"
    else:
        of = column_names(columns) if columns else "all columns"
    if reading.by is not None:
        of += f" over {expression_words(reading.by)}"
    if reading.split:
        of += f" per {column_name(reading.split)}"
    chart = _CHARTS[reading.chart or "line"]
    count = reading.rank.count if reading.rank is not None else None
    only = f" of the {'last' if reading.from_end else 'first'} {count} rows" if count else ""
    return f"{chart} of {of}{only}{_source(reading.source)}{where_words(reading.where)}"


def _inspection(reading: TableView) -> str:
    columns = column_names(reading.columns)
    table = column_names(table.part or table.file for table in reading.source.tables[:1])
    of = f" of {columns or table}"
    texts: dict[View, str] = {
        "describe": f"description{of}",
        "columns": f"columns{of}",
        "sample": f"sample of {reading.count} rows{of}",
        "values": f"distinct values{of}" if columns else f"distinct values per column{of}",
        "missing": f"missing values{of}" if columns else f"missing values per column{of}",
        "correlations": f"correlations{of}",
        "outliers": f"outliers{of}",
        "span": f"smallest and largest value{of}" if columns else f"span of the columns{of}",
        "shape": f"number of rows and columns of {table}",
        "duplicates": f"number of duplicates{of}" if columns else "number of duplicate rows",
    }
    return texts[reading.view]
