"""Code of rows and views of a table, and of measures of all rows or of groups."""

from __future__ import annotations

from taskweaver.analyst.code.charts import rows_chart, summary_chart
from taskweaver.analyst.code.conditions import (
    calendar_order,
    condition_code,
    expression_code,
    groups_code,
    key_names,
    label_of,
    of_series,
    order_key,
    series_code,
    value_code,
)
from taskweaver.analyst.code.frames import RESULT, Frame, ranked_code
from taskweaver.analyst.readings import (
    Column,
    Condition,
    Contrast,
    Cumulative,
    GroupKey,
    Measure,
    PeriodChange,
    Rank,
    Rows,
    Share,
    Summary,
    TableView,
    columns_in,
)
from taskweaver.analyst.wording.conditions import condition_words, expression_words
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


DIFFERENCE = "difference"
SHARE = "share in percent"


def summary_code(reading: Summary, frame: Frame) -> list[str]:
    """Return the lines after the choice of rows; the last is the value that is shown."""
    if reading.keys:
        return _grouped(reading, frame)
    match reading.then:
        case Contrast(first, second, is_relative):
            return _contrast(reading, first, second, frame, is_relative=is_relative)
        case Share(part):
            return [_share(reading.measures[0], part, frame)]
        case PeriodChange() | Cumulative():
            series = series_code(reading.measures[0].of or Column(""), frame)
            label = _label(reading, reading.measures[0])
            return _after(reading, label, [f"{RESULT} = {series}.to_frame({label!r})"], frame)
    return _values(reading, frame)


def _values(reading: Summary, frame: Frame) -> list[str]:
    """Return the code of measures of all rows: one value, or a table with a row for each."""
    codes = [value_code(measure, frame) for measure in reading.measures]
    if len(codes) == 1 and not reading.chart:
        is_in_parentheses = reading.measures[0].function in {"range", "iqr"}
        return [codes[0][1:-1] if is_in_parentheses else codes[0]]
    labels = [label_of(measure) for measure in reading.measures]
    entries = "\n".join(
        f"    {label!r}: {code}," for label, code in zip(labels, codes, strict=True)
    )
    mixed = "" if reading.chart else ", dtype=object"  # a count stays whole beside a mean
    table = f"pd.Series({{\n{entries}\n}}{mixed}).to_frame('value')"
    return [f"{RESULT} = {table}", *summary_chart(reading, "value", frame), RESULT]


def _contrast(
    reading: Summary, first: Condition, second: Condition, frame: Frame, *, is_relative: bool
) -> list[str]:
    sides = [condition_code(side, frame) for side in (first, second)]
    values = [value_code(reading.measures[0], frame, side) for side in sides]
    counts = ", ".join(f"({side}).sum()" for side in sides)
    return [
        f"print('rows used:', {counts})",
        f"{RESULT} = [\n    {values[0]},\n    {values[1]},\n]",
        f"print('values:', *{RESULT})",
        _difference(f"{RESULT}[0]", f"{RESULT}[1]", is_relative=is_relative),
    ]


def _difference(first: str, second: str, *, is_relative: bool) -> str:
    return f"100 * ({first} - {second}) / {second}" if is_relative else f"{first} - {second}"


def _share(measure: Measure, part: Condition | None, frame: Frame) -> str:
    where = condition_code(part, frame) if part is not None else ""
    if measure.of is None:
        return f"100 * {_mask(where, part, frame)}.mean()" if part is not None else "100.0"
    series = series_code(measure.of, frame)
    chosen = f"{series}[{where}]" if where else series
    if measure.function == "correlation":
        return value_code(measure, frame)
    return f"100 * {of_series(measure, chosen, frame)} / {of_series(measure, series, frame)}"


def _mask(where: str, part: Condition, frame: Frame) -> str:
    """Return a condition as a series without missing values, which a mean would leave out."""
    flags = [name for name in columns_in(part) if frame.kind(name) == "flag"]
    is_incomplete = any(frame.columns[name].missing for name in flags)
    return f"({where}).fillna(False)" if is_incomplete else f"({where})"


def _grouped(reading: Summary, frame: Frame) -> list[str]:
    taken = key_names(reading.keys)
    match reading.then:
        case Contrast(first, second, is_relative):
            lines = _group_contrast(reading, (first, second), frame, is_relative=is_relative)
            label = DIFFERENCE
        case Share(part) if part is not None:
            label = _free(SHARE, taken)
            code = _group_share(reading, part, frame)
            lines = [f"{RESULT} = ({code}).to_frame({label!r})"]
        case _:
            label, lines = _plain_groups(reading, frame, taken)
    lines += [] if reading.rank or reading.names_winner else _calendar_order(reading, frame)
    return _after(reading, label, lines, frame)


def _plain_groups(reading: Summary, frame: Frame, taken: list[str]) -> tuple[str, list[str]]:
    measures = reading.measures if reading.then is None else reading.measures[:1]
    codes = [groups_code(measure, reading.keys, frame) for measure in measures]
    labels = [_free(_label(reading, measure), taken) for measure in measures]
    if len(codes) == 1:
        return labels[0], [f"{RESULT} = {codes[0]}.to_frame({labels[0]!r})"]
    return labels[0], [_table(labels, codes)]


def _label(reading: Summary, measure: Measure) -> str:
    """Return the heading of a measure after the step of a reading."""
    label = label_of(measure)
    match reading.then:
        case Share():
            return SHARE
        case PeriodChange(is_relative):
            return f"change in percent of {label}" if is_relative else f"change of {label}"
        case Cumulative():
            return f"cumulative {label}"
        case _:
            return label


def _free(label: str, taken: list[str]) -> str:
    """Return a label that is no name of a group key."""
    while label in taken:
        label += "_"
    return label


def _group_contrast(
    reading: Summary, sides: tuple[Condition, Condition], frame: Frame, *, is_relative: bool
) -> list[str]:
    labels: list[str] = []
    for side in sides:
        labels.append(_free(condition_words(side).replace("`", ""), [*labels, DIFFERENCE]))
    codes = [
        groups_code(reading.measures[0], reading.keys, frame, condition_code(side, frame))
        for side in sides
    ]
    first, second = (f"{RESULT}[{label!r}]" for label in labels)
    difference = _difference(first, second, is_relative=is_relative)
    return [_table(labels, codes), f"{RESULT}[{DIFFERENCE!r}] = {difference}"]


def _table(labels: list[str], codes: list[str]) -> str:
    pairs = zip(labels, codes, strict=True)
    entries = "\n".join(f"    {label!r}: {code}," for label, code in pairs)
    return f"{RESULT} = pd.DataFrame({{\n{entries}\n}})"


def _group_share(reading: Summary, part: Condition, frame: Frame) -> str:
    measure, keys = reading.measures[0], reading.keys
    where = condition_code(part, frame)
    whole = Measure("count") if measure.of is None else measure
    return f"100 * {groups_code(measure, keys, frame, where)} / {groups_code(whole, keys, frame)}"


def _calendar_order(reading: Summary, frame: Frame) -> list[str]:
    """Return the line that puts names of months or weekdays in the order of the calendar."""
    orders = {
        name: order
        for key, name in zip(reading.keys, key_names(reading.keys), strict=True)
        if (order := calendar_order(key, frame))
    }
    if not orders:
        return []
    name, order = next(iter(orders.items()))
    places = f"names.map({order!r}.index)"
    if len(reading.keys) > 1:
        places += f" if names.name == {name!r} else names"
    return [f"{RESULT} = {RESULT}.sort_index(key=lambda names: {places})"]


def _after(reading: Summary, label: str, lines: list[str], frame: Frame) -> list[str]:
    """Return the lines with the step after the aggregation, the order, picture and value."""
    match reading.then:
        case Share(None):
            lines.append(f"{RESULT} = 100 * {RESULT} / {RESULT}.sum()")
        case PeriodChange(is_relative):
            lines.append(f"{RESULT} = {_change(reading.keys, frame, is_relative=is_relative)}")
        case Cumulative():
            lines.append(f"{RESULT} = {RESULT}{_of_others(reading.keys, frame)}.cumsum()")
        case _:
            pass
    order = _ranked(reading, label)
    lines += [f"{RESULT} = {order}"] if order else []
    shown = f"{RESULT}.reset_index()" if len(reading.keys) > 1 else RESULT
    return [*lines, *summary_chart(reading, label, frame), shown]


def _change(keys: tuple[GroupKey, ...], frame: Frame, *, is_relative: bool) -> str:
    of_others = _of_others(keys, frame)
    if is_relative:
        return f"(100 * ({RESULT} / {RESULT}{of_others}.shift() - 1)).dropna()"
    return f"{RESULT}{of_others}.diff().dropna()"


def _of_others(keys: tuple[GroupKey, ...], frame: Frame) -> str:
    """Return the code of a grouping by all keys but the one in order of time."""
    others = [at for at in range(len(keys)) if at != order_key(keys, frame)]
    return f".groupby(level={others if len(others) > 1 else others[0]})" if others else ""


def _ranked(reading: Summary, label: str) -> str:
    """Return the code of the groups in order, or of those that are shown; empty for all."""
    rank = reading.rank
    if rank is None:
        if not reading.names_winner:
            return ""
        rank = Rank(count=1)
    if reading.names_winner and rank.count in {None, 1} and not rank.nth:
        series = f"{RESULT}[{label!r}]"
        return f"{RESULT}[{series} == {series}.{'min' if rank.ascending else 'max'}()]"
    return ranked_code(RESULT, label, rank, is_sorted=reading.measures[0].function == "mode")
