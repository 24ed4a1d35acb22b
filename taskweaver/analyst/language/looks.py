"""Readings that show a table as it is, and pictures."""

from __future__ import annotations

from collections.abc import Sequence

from taskweaver.analyst.language.atoms import Fn, Keys, Look, Mark, Noun, Picture
from taskweaver.analyst.language.groups import NUMERIC, compared, conjuncts, expected_rows, measures
from taskweaver.analyst.language.names import counts_rows
from taskweaver.analyst.language.parser import Operand
from taskweaver.analyst.language.parts import Phrases, UnfitError, is_of_rows
from taskweaver.analyst.language.values import Cond, conjunction
from taskweaver.analyst.readings import (
    Chart,
    Column,
    Condition,
    GroupKey,
    Measure,
    Missing,
    OneOf,
    Rank,
    Reading,
    Rows,
    Summary,
    TableView,
    columns_in,
)

_MOST_OF_EACH, _MOST_LINES = 1.5, 12


def looked(parts: Phrases) -> Reading | None:
    """Return the reading of a request to look at a table; None if it is none."""
    looks = [look.view for _, look in parts.all(Look)]
    is_computed = parts.has(Fn, lambda fn: fn.function not in ("count", "nunique"))
    if "missing" in looks and not parts.has(Picture):
        return _missing(parts)
    if "duplicates" in looks and not is_computed and not parts.has(Picture):
        return _duplicates(parts)
    counts_values = parts.has(Fn, lambda fn: fn.function == "count") and "values" in looks
    if not looks or is_computed or parts.has(Picture) or counts_values:
        return None
    look = next(look for _, look in parts.all(Look))
    parts.take_all(Look, lambda other: other == look or other.view == "values")
    if parts.has(Fn):
        raise UnfitError("count")
    parts.mark("which percolumn when")
    return _view(parts, look, _names(parts), parts.where())


def _view(parts: Phrases, look: Look, names: tuple[str, ...], where: Condition | None) -> Reading:
    view = look.view
    if view == "head" or view == "tail":
        rank = Rank(count=look.count or 5)
        return Rows(parts.source, names, where, rank=rank, from_end=view == "tail")
    if view == "ncolumns":
        return TableView(parts.source, "shape", names, where)
    if view == "span" and not names and parts.scope.year_columns == parts.scope.time_columns:
        names = parts.scope.year_columns
    if view == "values" and not names:
        raise UnfitError("values", "Name the column whose values are listed.")
    if view == "columns" and names:
        raise UnfitError("columns")
    if view == "correlations" and len(names) == 1:
        raise UnfitError("correlations", "Name two columns, or none.")
    return TableView(parts.source, view, names, where, look.count or 5)


def _duplicates(parts: Phrases) -> Reading:
    """Return the number of duplicates: of columns, or of rows without the numbers of the rows."""
    parts.take_all(Look, lambda look: look.view in ("duplicates", "values"))
    parts.take_all(Fn)
    parts.take_all(Noun, lambda noun: noun.kind in ("row", "file"))
    parts.mark("which")
    names, columns, rows = _names(parts), parts.scope.columns, parts.scope.rows
    if not names:
        numbers = {name for name, column in columns.items() if counts_rows(column, rows)}
        names = tuple(name for name in columns if name not in numbers) if numbers else ()
    return TableView(parts.source, "duplicates", names, parts.where())


def _names(parts: Phrases) -> tuple[str, ...]:
    found = []
    for operand in parts.take_all(Operand):
        value = parts.column_of(operand)
        if not isinstance(value, Column):
            raise UnfitError(operand.phrase)
        found.append(value.name)
    return tuple(dict.fromkeys(found))


def _missing(parts: Phrases) -> Reading:
    """Return the number of missing values: of a column, of each, or of all."""
    views = parts.take_all(Look, lambda look: look.view in ("missing", "values", "columns"))
    if parts.has(Look):
        raise UnfitError("missing")
    counts = parts.take_all(Fn, lambda fn: fn.function in ("count", "sum"))
    if counts and parts.has(Noun, is_of_rows):
        return _incomplete(parts)
    of_columns = any(look.view == "columns" for look in views)
    per_column = parts.mark("percolumn everything") is not None or of_columns
    is_which = parts.mark("which") is not None
    where = parts.where()
    names = _names(parts)
    if counts and len(names) > 1:
        raise UnfitError(names, "Name one column.")
    if len(names) == 1 and not per_column:
        return Summary(parts.source, (Measure("missing", Column(names[0])),), (), where)
    if counts and not per_column and not names and not is_which:
        return Summary(parts.source, (Measure("missing"),), (), where)
    return TableView(parts.source, "missing", names, where)


def _incomplete(parts: Phrases) -> Reading:
    """Return the number of rows with missing values: of one column, or of any."""
    parts.take_all(Noun, is_of_rows)
    where = parts.where()
    names = _names(parts)
    if len(names) > 1 or parts.mark("percolumn everything") is not None:
        raise UnfitError("missing", "Name one column.")
    is_missing = Missing(names[0] if names else "")
    return Summary(parts.source, (Measure("count"),), (), conjunction(where, is_missing))


# -- pictures -------------------------------------------------------------------------------------


def pictured(parts: Phrases) -> Reading | None:
    """Return the reading of a request for a picture; None if it asks for none."""
    pictures = [picture.chart for picture in parts.take_all(Picture)]
    if not pictures:
        return None
    charts = list(dict.fromkeys(chart for chart in pictures if chart != "any"))
    if len(charts) > 1:
        raise UnfitError(charts, "One picture at a time.")
    over = parts.mark("over") is not None
    against = parts.mark("against") is not None
    parts.mark("which")
    conds = parts.conditions()
    where = parts.condition(conds)
    chart: Chart | None = charts[0] if charts else None
    if chart == "histogram" and _counts_texts(parts):
        chart = "bar"
    if parts.has(Fn):
        return _of_groups(parts, chart, conds, where, is_over=over)
    if chart is None:
        chart = _guess(parts, conds, is_over=over, is_against=against)
    if chart in ("bar", "pie"):
        return _of_groups(parts, chart, conds, where, is_over=over)
    return _of_rows(parts, chart, conds, where, is_against=against)


def _counts_texts(parts: Phrases) -> bool:
    """Return whether the ``distribution`` of a column of texts is drawn: counts as bars."""
    is_distribution = "distribution" in parts.words.text.casefold()
    names = [name for _, operand in parts.all(Operand) for name in operand.names]
    return is_distribution and len(names) == 1 and parts.kind(names[0]) == "text"


def _guess(parts: Phrases, times: Sequence[Cond], *, is_over: bool, is_against: bool) -> Chart:
    numbers = [operand for _, operand in parts.all(Operand) if parts.may_be_numbers(operand)]
    is_span = any(cond.is_time for cond in times)
    has_time = len(parts.scope.time_columns) == 1
    if is_over or (is_span and has_time and len(numbers) == 1):
        return "line"
    if is_against and len(numbers) == 2:
        return "scatter"
    if parts.has(Keys) or not numbers:
        return "bar"
    if len(numbers) == 1 and not parts.scope.time_columns:
        return "histogram"
    raise UnfitError("plot", "Name the kind of picture: bar, line, scatter, histogram or box.")


def _of_groups(
    parts: Phrases,
    chart: Chart | None,
    conds: Sequence[Cond],
    where: Condition | None,
    *,
    is_over: bool,
) -> Reading:
    if chart in ("histogram", "box", "scatter"):
        raise UnfitError(chart, f"A {chart} is drawn from the rows, not from one value each.")
    keys = parts.keys()
    if is_over:
        keys = (*keys, *_time_key(parts))
    found = measures(parts) if parts.has(Fn) else (_counted(parts),)
    keys = tuple(dict.fromkeys((*keys, *compared(parts, conds, found))))
    if not keys:
        texts = parts.take(Operand, lambda operand: any(
            parts.kind(name) not in NUMERIC for name in operand.names))  # fmt: skip
        if texts is None:
            raise UnfitError(chart or "plot", "Name the groups to draw: “per …”.")
        value = parts.column_of(texts)
        keys = (GroupKey(value.name),) if isinstance(value, Column) else ()
    periods = {*parts.scope.year_columns, *parts.scope.date_parts.values()}
    is_time = any(key.unit or parts.kind(key.column) == "time" or key.column in periods
                  for key in keys)  # fmt: skip
    chart = chart or ("line" if is_time else "bar")
    return Summary(parts.source, tuple(found), keys, where, chart=chart)


def _counted(parts: Phrases) -> Measure:
    numbers = [
        operand.phrase
        for _, operand in parts.all(Operand)
        if all(parts.kind(name) in NUMERIC for name in operand.names) or operand.is_arithmetic
    ]
    if numbers:
        raise UnfitError(numbers[:1], f"Say mean, total or median of {numbers[0]}.")
    return Measure("count")


def _time_key(parts: Phrases) -> tuple[GroupKey, ...]:
    times = parts.scope.time_columns
    if len(times) != 1:
        raise UnfitError("over time", "There is not one column of times.")
    parts.mentioned.add(times[0])
    return (GroupKey(times[0]),)


def _of_rows(
    parts: Phrases,
    chart: Chart,
    conds: Sequence[Cond],
    where: Condition | None,
    *,
    is_against: bool,
) -> Reading:
    keys = parts.keys()
    parts.take_all(Noun, is_of_rows)
    texts = parts.take_all(Operand, lambda operand: not parts.may_be_numbers(operand))
    splits = [key.column for key in keys] + [name for operand in texts for name in operand.names]
    splits += [key.column for key in compared(parts, conds, (Measure("mean"),)) if not key.unit]
    splits = list(dict.fromkeys(splits))
    names = []
    for operand in parts.take_all(Operand, lambda operand: not operand.is_arithmetic):
        value = parts.column_of(operand, kinds=NUMERIC)
        names += [value.name] if isinstance(value, Column) else []
    names = list(dict.fromkeys(names))
    units = [key.unit or key.part or "" for key in keys if key.unit or key.part]
    if chart == "line" and units:
        raise UnfitError(units, "Say mean, total or median of each period.")
    if chart == "line":
        return _line(parts, names, splits, where)
    wanted = 2 if chart == "scatter" else 1
    has_time = any(key.unit or key.part for key in keys)
    if splits and (chart != "box" or has_time):
        raise UnfitError(splits, f"A {chart} is not split by a column.")
    if len(names) != wanted or len(splits) > 1:
        count = "two columns" if wanted == 2 else "one column"
        raise UnfitError(chart, f"A {chart} is drawn from {count} of numbers.")
    if chart == "scatter" and is_against and _is_explicit(parts):
        names.reverse()
    return Rows(parts.source, tuple(names), where, chart=chart, split=splits[0] if splits else "")


def _is_explicit(parts: Phrases) -> bool:
    """Return whether the second column is the horizontal one: ``a against b``."""
    words = {parts.phrase(atom).casefold() for atom, _ in parts.every(Mark)}
    return bool(words & {"against", "versus", "vs", "as a function of"})


def _line_of_each(parts: Phrases, time: str, name: str, split: str, where: Condition | None) -> str:
    """Return the column whose values have a line each, where one time has several rows; or empty.

    Raises:
        UnfitError: If no column of few texts tells the rows of one time apart.
    """
    found = [part for part in conjuncts(where) if time not in columns_in(part)]
    listed = {part.column: len(part.values) for part in found if isinstance(part, OneOf)}
    left = {other: listed.get(other, parts.distinct(other)) for other in parts.scope.columns}
    rows = expected_rows(parts, conjunction(*found)) / max(left[time], 1)
    if rows <= _MOST_OF_EACH * left.get(split, 1):
        return split
    few = [
        other
        for other, count in left.items()
        if parts.kind(other) == "text" and count / 2 <= rows <= count <= _MOST_LINES
    ]
    if split or len(few) != 1:
        raise UnfitError(name, f"Each `{time}` has several rows. Say mean or total of {name}.")
    return few[0]


def _line(
    parts: Phrases,
    names: list[str],
    splits: list[str],
    where: Condition | None,
) -> Reading:
    times = [name for name in splits if name in parts.scope.time_columns]
    splits = [name for name in splits if name not in times]
    if not times:
        times = [key.column for key in _time_key(parts)]
    names = [name for name in names if name not in times]
    if not names or len(splits) > (len(names) == 1) or len(times) != 1:
        raise UnfitError("line", "A line is drawn from one column of numbers over time.")
    columns = (times[0], *names)
    split = _line_of_each(parts, times[0], names[0], "".join(splits), where)
    if split and len(names) > 1:
        raise UnfitError(split)
    return Rows(parts.source, columns, where, Column(times[0]), Rank(ascending=True), chart="line",
                split=split)  # fmt: skip
