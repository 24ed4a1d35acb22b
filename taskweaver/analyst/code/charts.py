"""Pictures as pandas code: the kind that the reading names, with its words as the title.

No variable is left behind: a picture is drawn and saved in one expression.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from datetime import datetime
from zlib import crc32

from taskweaver.analyst.code.conditions import key_names, order_key
from taskweaver.analyst.code.frames import RESULT, Frame
from taskweaver.analyst.readings import (
    CalendarPart,
    Column,
    Contrast,
    GroupKey,
    Rows,
    Summary,
    Unit,
)
from taskweaver.analyst.wording.inert import capital
from taskweaver.analyst.wording.requests import in_words

MOST_BARS = 30
_MOST_UPRIGHT, _MOST_UPRIGHT_CHARS = 8, 12
_MOST_NAME_CHARS = 60
_TITLE_CHARS = 70
_SIZE = "figsize=(8, 4.5)"
_DAYS: dict[Unit, float] = {
    "year": 365.25, "quarter": 91.3, "month": 30.4, "week": 7, "day": 1, "hour": 1 / 24,
}  # fmt: skip
_PART_COUNTS: dict[CalendarPart, int] = {
    "quarter": 4, "month": 12, "weekday": 7, "day": 31, "hour": 24, "decade": 12,
}  # fmt: skip


def summary_chart(reading: Summary, label: str, frame: Frame) -> list[str]:
    """Return the lines that draw a summary, its values headed `label`; none without a picture."""
    names, at = key_names(reading.keys), order_key(reading.keys, frame)
    across = names[at] if names else ""
    upward = label if len(reading.measures) == 1 or reading.then is not None else ""
    data = f"{RESULT}[[{label!r}]]" if isinstance(reading.then, Contrast) else RESULT
    if len(names) > 1:
        others = [other for other in range(len(names)) if other != at]
        data = f"{RESULT}[{label!r}].unstack(level={others if len(others) > 1 else others[0]})"
    lines: list[str] = []
    match reading.chart:
        case None:
            return []
        case "bar":
            lines, data = _few_bars(reading, label, data, frame)
            plot = _bars(reading, data, (across, upward), frame)
        case "pie":
            plot = _pie(RESULT, label)
        case "histogram":
            options = ["bins=30", f"xlabel={label!r}", "legend=False"]
            plot = _plot(f"{RESULT}[[{label!r}]]", "hist", options)
        case "box":
            plot = _plot(f"{RESULT}[[{label!r}]]", "box", [])
        case "scatter":
            axes = [f"x={across or 'index'!r}", f"y={label!r}"]
            plot = _plot(f"{RESULT}.reset_index()", "scatter", axes)
        case _:
            data = f"{data}.sort_index()" if reading.rank is not None else data
            options = [f"xlabel={across!r}", f"ylabel={upward!r}", *_legend(reading)]
            few = _groups(reading.keys[at : at + 1], frame) <= MOST_BARS
            plot = _plot(data, "line", [*options, *(["marker='o'"] if few else [])])
    return [*lines, *_drawn(reading, plot, frame)]


def _plot(data: str, kind: str, options: list[str]) -> tuple[str, str]:
    """Return the code up to the title of a picture, and its end."""
    given = options if any("figsize" in option for option in options) else [*options, _SIZE]
    return f"{data}.plot.{kind}(\n    {', '.join(given)},\n", ")"


def _pie(data: str, label: str) -> tuple[str, str]:
    options = [f"y={label!r}", "autopct='%1.0f%%'", "ylabel=''", "legend=False", "figsize=(6, 6)"]
    return _plot(data, "pie", options)


def _legend(reading: Summary) -> list[str]:
    is_alone = len(reading.keys) < 2 and len(reading.measures) == 1
    return ["legend=False"] if is_alone else []


def _few_bars(reading: Summary, label: str, data: str, frame: Frame) -> tuple[list[str], str]:
    """Return the data of at most `MOST_BARS` bars, and a line that says so."""
    shown = reading.rank.count if reading.rank is not None else None
    if min(shown or MOST_BARS + 1, _groups(reading.keys[:1], frame)) <= MOST_BARS:
        return [], data
    key = reading.keys[order_key(reading.keys, frame)]
    if key.unit or key.part or len(reading.keys) > 1:
        place, data = "last", f"{data}.tail({MOST_BARS})"
    else:
        place, data = "largest", f"{data}.nlargest({MOST_BARS}, {label!r})"
    return [f"print('bars: {place} {MOST_BARS} of', len({RESULT}))"], data


def _bars(reading: Summary, data: str, axes: tuple[str, str], frame: Frame) -> tuple[str, str]:
    """Return the code of a bar chart: lying bars where labels are long."""
    groups = min(_groups(reading.keys[:1], frame), MOST_BARS)
    if reading.rank is not None and reading.rank.count:
        groups = min(groups, reading.rank.count)
    key = reading.keys[order_key(reading.keys, frame)] if reading.keys else None
    across, label = axes
    is_upright = key is not None and (key.unit is not None or key.part is not None)
    if is_upright or (groups <= _MOST_UPRIGHT and _label_chars(key, frame) <= _MOST_UPRIGHT_CHARS):
        turned = 90 if groups > _MOST_UPRIGHT else 0
        options = [f"xlabel={across!r}", f"ylabel={label!r}", f"rot={turned}", *_legend(reading)]
        return _plot(data, "bar", options)
    size = f"figsize=(8, {round(1.5 + 0.3 * groups, 1)})"
    options = [f"xlabel={label!r}", f"ylabel={across!r}", *_legend(reading), size]
    return _plot(f"{data}.iloc[::-1]", "barh", options)


def _groups(keys: tuple[GroupKey, ...], frame: Frame) -> int:
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


def _label_chars(key: GroupKey | None, frame: Frame) -> int:
    profile = frame.columns.get(key.column) if key else None
    if profile is None or profile.values is None:
        return 0 if profile and profile.kind != "text" else _MOST_UPRIGHT_CHARS + 1
    return max(map(len, profile.values), default=0)


def rows_chart(reading: Rows, frame: Frame) -> list[str]:
    """Return the lines that draw the columns of rows.

    A scatter plot has the first column across and the second one up; a line has `by` across, or
    else the first time column, or else the first of several columns.
    """
    columns = list(reading.columns) or [
        name for name, profile in frame.columns.items() if profile.kind in {"number", "integer"}
    ]
    data = frame.name
    match reading.chart:
        case "scatter" if len(columns) > 1:
            plot = _scatter(columns[0], columns[1], data, reading.split)
        case "histogram":
            plot = _distribution(columns, reading.split, data, "hist")
        case "box":
            plot = _distribution(columns, reading.split, data, "box")
        case "line" | "scatter":
            plot = _over(reading, columns, frame)
        case "pie":
            x, values = _across(reading, columns, frame)
            plot = _pie(f"{data}.set_index({x!r})" if x else data, values[0])
        case _:
            x, values = _across(reading, columns, frame)
            options = [f"x={x!r}"] if x else []
            plot = _plot(
                f"{data}.head({MOST_BARS}).iloc[::-1]", "barh", [*options, f"y={values!r}"]
            )
    return _drawn(reading, plot, frame)


def _scatter(x: str, y: str, data: str, split: str) -> tuple[str, str]:
    axes = [f"x={x!r}", f"y={y!r}"]
    if not split:
        return _plot(data, "scatter", [*axes, "alpha=0.5"])
    data = f"{data}.astype({{{split!r}: 'category'}})"
    return _plot(data, "scatter", [*axes, f"c={split!r}", "colormap='viridis'", "alpha=0.7"])


def _distribution(columns: list[str], split: str, data: str, kind: str) -> tuple[str, str]:
    options = ["bins=30"] if kind == "hist" else []
    options += ["alpha=0.6"] if kind == "hist" and (split or len(columns) > 1) else []
    if len(columns) == 1:
        if kind == "hist":
            options.append(f"xlabel={columns[0]!r}")
        else:
            options += [f"xlabel={split!r}", f"ylabel={columns[0]!r}"]
    if not split:
        options += ["legend=False"] if kind == "hist" and len(columns) == 1 else []
        return _plot(f"{data}[{columns!r}]", kind, options)
    values = columns[0] if len(columns) == 1 else columns
    data = f"{data}.dropna(subset=[{split!r}]).pivot(columns={split!r}, values={values!r})"
    return _plot(data, kind, options)


def _across(reading: Rows, columns: list[str], frame: Frame) -> tuple[str, list[str]]:
    """Return the column across (empty for the order of the rows) and those drawn."""
    if isinstance(reading.by, Column):
        across = reading.by.name
    else:
        times = [name for name in columns if frame.kind(name) == "time"]
        across = times[0] if times else columns[0] if len(columns) > 1 else ""
    values = [name for name in columns if name != across]
    return (across, values) if values else ("", columns)


def _over(reading: Rows, columns: list[str], frame: Frame) -> tuple[str, str]:
    x, values = _across(reading, columns, frame)
    data = f"{frame.name}.sort_values({x!r})" if x else frame.name
    if reading.chart == "scatter":
        axes = [f"x={x or 'index'!r}", f"y={values[0]!r}"]
        return _plot(f"{data}.reset_index()", "scatter", axes)
    labels = [f"xlabel={x!r}"] if x else []
    labels += [f"ylabel={values[0]!r}"] if len(values) == 1 else []
    if reading.split and len(values) == 1:
        data = f"{data}.set_index({x!r})" if x else data
        data = f"{data}.groupby({reading.split!r})[{values[0]!r}]"
        start, end = _plot(data, "line", [*labels, "legend=True"])
        return start, f"{end}.iloc[0]"
    if reading.split:
        data = f"{data}.pivot(index={x!r}, columns={reading.split!r}, values={values!r})"
        return _plot(data, "line", labels)
    given = [f"x={x!r}"] if x else []
    legend = ["legend=False"] if len(values) == 1 else []
    return _plot(data, "line", [*given, f"y={values!r}", *labels, *legend])


def _drawn(reading: Summary | Rows, plot: tuple[str, str], frame: Frame) -> list[str]:
    """Return the code that draws and saves the picture."""
    words = in_words(reading)
    title = "\n".join(textwrap.wrap(capital(words.replace("`", "")), _TITLE_CHARS))
    save = f".figure.savefig({picture_name(words)!r}, dpi=120, bbox_inches='tight')"
    code = f"{plot[0]}    title={title!r},\n{plot[1]}{save}"
    if ".groupby(" in plot[0]:  # it draws on the figure that is open
        code = f"plt.figure()\n{code}"
    before = [f"if len({RESULT}):"] if reading.where is not None else []
    if _may_hold_dollars(reading, code, frame):
        # A pair of dollars would be set as a formula.
        before.append("with plt.rc_context({'text.parse_math': False}):")
    indented = [textwrap.indent(line, "    " * depth) for depth, line in enumerate([*before, code])]
    return ["\n".join(indented)]


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
