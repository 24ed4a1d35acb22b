"""Pictures as pandas code: the kind that the reading names, with its words as the title.

No variable is left behind: a picture is drawn and saved in one expression.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from zlib import crc32

from taskweaver.analyst.frames import RESULT, Frame
from taskweaver.analyst.measures_code import key_names, order_key
from taskweaver.analyst.reading import CalendarPart, Column, Contrast, Key, Rows, Summary, Unit
from taskweaver.analyst.words import in_words

MOST_BARS = 30
_MOST_UPRIGHT, _MOST_UPRIGHT_CHARS = 8, 12
_MOST_NAME_CHARS = 60
_TITLE_CHARS = 70
_DAYS: dict[Unit, float] = {
    "year": 365.25, "quarter": 91.3, "month": 30.4, "week": 7, "day": 1, "hour": 1 / 24,
}  # fmt: skip
_PART_COUNTS: dict[CalendarPart, int] = {
    "quarter": 4, "month": 12, "weekday": 7, "day": 31, "hour": 24,
}  # fmt: skip


def summary_chart(reading: Summary, label: str, frame: Frame) -> list[str]:
    """Return the lines that draw the table of a summary; none if it has no picture.

    Args:
        reading: The summary.
        label: Heading of the values.
        frame: Frame that the groups are of.
    """
    names = key_names(reading.keys)
    axes = {"xlabel": names[order_key(reading.keys)] if names else "", "ylabel": label}
    data = f"{RESULT}[[{label!r}]]" if isinstance(reading.then, Contrast) else RESULT
    if len(names) > 1:
        others = [at for at in range(len(names)) if at != order_key(reading.keys)]
        data = f"{RESULT}[{label!r}].unstack(level={others if len(others) > 1 else others[0]})"
    is_alone = len(names) < 2 and len(reading.measures) == 1
    title = _title(reading)
    lines: list[str] = []
    match reading.chart:
        case None:
            return []
        case "bar":
            lines, data = _few_bars(reading, label, data, frame)
            data, plot = _bars(reading, data, axes, frame, is_alone=is_alone)
        case "pie":
            data = f"{RESULT}[{label!r}]"
            plot = "pie(autopct='%1.0f%%', ylabel='', figsize=(6, 6),"
        case "histogram":
            data, plot = f"{RESULT}[{label!r}]", _call("hist", {"bins": 30, "xlabel": label})
        case "box":
            data, plot = f"{RESULT}[[{label!r}]]", _call("box", {})
        case "scatter":
            data, plot = f"{RESULT}.reset_index()", f"scatter(x={axes['xlabel']!r}, y={label!r},"
        case _:
            data = f"{data}.sort_index()" if reading.rank is not None else data
            few = _groups(reading.keys, frame) <= MOST_BARS
            marker = {"marker": "o"} if few else {}
            plot = _call("line", {**axes, **marker}, is_alone=is_alone)
    return [*lines, *_drawn(reading, f"{data}.plot.{plot}{title})", frame)]


def _call(kind: str, options: Mapping[str, str | int], *, is_alone: bool = True) -> str:
    given = [f"{name}={value!r}" for name, value in options.items()]
    given += ["legend=False"] if is_alone and kind == "line" else []
    return f"{kind}({', '.join([*given, 'figsize=(8, 4.5)'])},"


def _few_bars(reading: Summary, label: str, data: str, frame: Frame) -> tuple[list[str], str]:
    """Return the data of at most `MOST_BARS` bars, and a line that says so."""
    shown = reading.rank.count if reading.rank is not None else None
    if min(shown or MOST_BARS + 1, _groups(reading.keys[:1], frame)) <= MOST_BARS:
        return [], data
    key = reading.keys[order_key(reading.keys)]
    if key.unit or key.part or len(reading.keys) > 1:
        place, data = "last", f"{data}.tail({MOST_BARS})"
    else:
        place, data = "largest", f"{data}.nlargest({MOST_BARS}, {label!r})"
    return [f"print('bars: {place} {MOST_BARS} of', len({RESULT}))"], data


def _bars(
    reading: Summary, data: str, axes: dict[str, str], frame: Frame, *, is_alone: bool
) -> tuple[str, str]:
    """Return the data and the call of a bar chart: lying bars where labels are long."""
    legend = ", legend=False" if is_alone else ""
    groups = min(_groups(reading.keys[:1], frame), MOST_BARS)
    if reading.rank is not None and reading.rank.count:
        groups = min(groups, reading.rank.count)
    key = reading.keys[order_key(reading.keys)] if reading.keys else None
    is_upright = key is not None and (key.unit is not None or key.part is not None)
    if is_upright or (groups <= _MOST_UPRIGHT and _label_chars(key, frame) <= _MOST_UPRIGHT_CHARS):
        turned = 90 if groups > _MOST_UPRIGHT else 0
        call = f"xlabel={axes['xlabel']!r}, ylabel={axes['ylabel']!r}, rot={turned}{legend}"
        return data, f"bar({call}, figsize=(8, 4.5),"
    height = round(1.5 + 0.3 * groups, 1)
    call = f"xlabel={axes['xlabel']!r}, ylabel={axes['ylabel']!r}{legend}"
    return f"{data}.iloc[::-1]", f"barh({call}, figsize=(8, {height}),"


def _groups(keys: tuple[Key, ...], frame: Frame) -> int:
    """Return an estimate of the number of groups; more than `MOST_BARS` where it is unknown."""
    count = 1
    for key in keys:
        profile = frame.columns.get(key.column)
        if key.part:
            count *= _PART_COUNTS[key.part]
        elif profile is None:
            count *= MOST_BARS + 1
        elif key.unit:
            count *= _periods(profile.low, profile.high, key.unit)
        else:
            count *= profile.distinct
    return count


def _periods(low: str, high: str, unit: Unit) -> int:
    try:
        span = datetime.fromisoformat(high) - datetime.fromisoformat(low)
    except (ValueError, TypeError):
        return MOST_BARS + 1
    return int(span.total_seconds() / 86_400 / _DAYS[unit]) + 1


def _label_chars(key: Key | None, frame: Frame) -> int:
    profile = frame.columns.get(key.column) if key else None
    if profile is None or profile.values is None:
        return 0 if profile and profile.kind != "text" else _MOST_UPRIGHT_CHARS + 1
    return max(map(len, profile.values), default=0)


def rows_chart(reading: Rows, frame: Frame) -> list[str]:
    """Return the lines that draw the columns of rows.

    A scatter plot has the second column across and the first one up; a line has `by` across, or
    else the first time column, or else the first of several columns.
    """
    columns = list(reading.columns) or [
        name for name, profile in frame.columns.items() if profile.kind in {"number", "integer"}
    ]
    data, title = frame.name, _title(reading)
    match reading.chart:
        case "scatter" if len(columns) > 1:
            drawn = _scatter(columns[1], columns[0], data, reading.split) + f"{title})"
        case "histogram":
            drawn = _distribution(columns, reading.split, data, "hist") + f"{title})"
        case "box":
            drawn = _distribution(columns, reading.split, data, "box") + f"{title})"
        case "line" | "scatter":
            drawn = _over(reading, columns, frame)
        case "pie":
            x, values = _across(reading, columns, frame)
            data = f"{data}.set_index({x!r})" if x else data
            drawn = f"{data}[{values[0]!r}].plot.pie(autopct='%1.0f%%', ylabel='',{title})"
        case _:
            x, values = _across(reading, columns, frame)
            across = f"x={x!r}, " if x else ""
            drawn = f"{data}.head({MOST_BARS}).iloc[::-1].plot.barh({across}y={values!r},{title})"
    return _drawn(reading, drawn, frame)


def _scatter(x: str, y: str, data: str, split: str) -> str:
    if split:
        colours = f"c={split!r}, colormap='viridis', "
        data = f"{data}.astype({{{split!r}: 'category'}})"
        return f"{data}.plot.scatter(x={x!r}, y={y!r}, {colours}alpha=0.7,"
    return f"{data}.plot.scatter(x={x!r}, y={y!r}, alpha=0.5,"


def _distribution(columns: list[str], split: str, data: str, kind: str) -> str:
    if kind == "box":
        options = f"{f'xlabel={split!r}, ' if split else ''}ylabel={columns[0]!r}, "
        options = options if len(columns) == 1 else ""
    else:
        clear = "alpha=0.6, " if split or len(columns) > 1 else ""
        options = f"bins=30, {clear}" + (f"xlabel={columns[0]!r}, " if len(columns) == 1 else "")
    if split:
        values = columns[0] if len(columns) == 1 else columns
        data = f"{data}.dropna(subset=[{split!r}]).pivot(columns={split!r}, values={values!r})"
    else:
        data = f"{data}[{columns[0]!r}]" if len(columns) == 1 else f"{data}[{columns!r}]"
    return f"{data}.plot.{kind}({options}figsize=(8, 4.5),"


def _across(reading: Rows, columns: list[str], frame: Frame) -> tuple[str, list[str]]:
    """Return the column across (empty for the order of the rows) and those drawn."""
    if isinstance(reading.by, Column):
        across = reading.by.name
    else:
        times = [name for name in columns if frame.kind(name) == "time"]
        across = times[0] if times else columns[0] if len(columns) > 1 else ""
    values = [name for name in columns if name != across]
    return (across, values) if values else ("", columns)


def _over(reading: Rows, columns: list[str], frame: Frame) -> str:
    title = _title(reading)
    x, values = _across(reading, columns, frame)
    data = f"{frame.name}.sort_values({x!r})" if x else frame.name
    y = values[0] if len(values) == 1 else values
    if reading.chart == "scatter":
        return f"{data}.reset_index().plot.scatter(x={x or 'index'!r}, y={values[0]!r},{title})"
    labels = f"ylabel={values[0]!r}, " if len(values) == 1 else ""
    labels = f"xlabel={x!r}, {labels}" if x else labels
    if reading.split and len(values) > 1:
        data = f"{data}.pivot(index={x!r}, columns={reading.split!r}, values={y!r})"
        return f"{data}.plot.line({labels}figsize=(8, 4.5),{title})"
    if reading.split:
        data = f"{data}.set_index({x!r})" if x else data
        data = f"{data}.groupby({reading.split!r})[{y!r}]"
        return f"{data}.plot.line({labels}legend=True, figsize=(8, 4.5),{title}).iloc[0]"
    across = f"x={x!r}, " if x else ""
    legend = "legend=False, " if len(values) == 1 else ""
    return f"{data}.plot.line({across}y={y!r}, {labels}{legend}figsize=(8, 4.5),{title})"


def _drawn(reading: Summary | Rows, plot: str, frame: Frame) -> list[str]:
    """Return the code that draws and saves the picture."""
    code = (
        f"{plot}.figure.savefig({picture_name(in_words(reading))!r}, dpi=120, bbox_inches='tight')"
    )
    before = [f"if len({RESULT}):"] if reading.where is not None else []
    if _may_hold_dollars(reading, code, frame):
        # A pair of dollars would be set as a formula.
        before.append("with plt.rc_context({'text.parse_math': False}):")
    indented = [textwrap.indent(line, "    " * depth) for depth, line in enumerate([*before, code])]
    return ["\n".join(indented)]


def _title(reading: Summary | Rows) -> str:
    words = in_words(reading).replace("`", "")
    lines = textwrap.wrap(words[:1].upper() + words[1:], _TITLE_CHARS)
    title = "\n".join(lines)
    return f"\n    title={title!r},\n"


def _may_hold_dollars(reading: Summary | Rows, code: str, frame: Frame) -> bool:
    if "$" in code:
        return True
    names = [key.column for key in reading.keys] if isinstance(reading, Summary) else []
    names += [reading.split] if isinstance(reading, Rows) and reading.split else []
    texts = [frame.columns[name] for name in names if frame.kind(name) == "text"]
    return any(
        profile.values is None or any("$" in value for value in profile.values) for profile in texts
    )


def picture_name(words: str) -> str:
    """Return the file name of a picture: ASCII, at most 60 characters, the same for the same words.

    A name that had to be cut ends in a checksum, so that two pictures do not share it.
    """
    plain = unicodedata.normalize("NFKD", words.lower()).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    most = _MOST_NAME_CHARS - len(".png")
    is_lossless = len(stem) <= most and words.isascii()
    if not is_lossless:
        mark = f"{crc32(words.encode('utf-8', 'replace')):08x}"
        stem = f"{stem[: most - len(mark) - 1].rstrip('_')}_{mark}".lstrip("_")
    return f"{stem or 'picture'}.png"
