"""The answer to a request, made of its reading and the printed outcome of its cell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from taskweaver.analyst.readings import (
    And,
    Contrast,
    FileListing,
    Python,
    Reading,
    Rows,
    Share,
    Sql,
    Summary,
    TableView,
    Understood,
)
from taskweaver.analyst.wording.inert import capital, column_name, listed, shown_text, value_text
from taskweaver.analyst.wording.requests import DEFAULT_ROWS, in_words, where_words
from taskweaver.utils.markup.inert_markdown import inert_markdown
from taskweaver.utils.parsing import literal_value
from taskweaver.utils.text import counted, fenced

_ROWS = "rows used:"
_MISSING = "without a value:"
_VALUES = "values:"
_BARS = "bars:"
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf)")
_WRAPPED = re.compile(r"(?:np|numpy)\.\w+\((.*)\)")
_TIME = re.compile(
    r"(?:Timestamp\(['\"])?(\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2}:\d{2}\S*?))?(?:['\"].*\))?"
)
_ABSENT = {"nan", "NaN", "NaT", "None", "<NA>"}
_FORM = re.compile(r".+: [\d,]+ rows? x [\d,]+ columns?(?:, .*)?")
_CLOCK = re.compile(r"(?<=\d) \d\d:\d\d:\d\d")
_ROW_NUMBER = re.compile(r"(?:\d+|\.\.)(?= +\S)")
_UNGROUPED = 10_000
_DIGITS = 7
_MOST_OTHERS = 8


@dataclass(frozen=True)
class PrintedLines:
    """Printed lines of a cell.

    Attributes:
        rows: Numbers of rows used: one, or one for each side of a contrast.
        missing: Number of missing values by column.
        values: The two values of a contrast.
        others: Other lines, for example decisions about reading a file; not its form alone.
    """

    rows: tuple[int, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def read_printed(output: str) -> PrintedLines:
    """Return the printed lines of a cell."""
    rows: tuple[int, ...] = ()
    missing: dict[str, int] = {}
    values: tuple[str, ...] = ()
    others: list[str] = []
    for line in output.splitlines():
        name, mark, rest = line.partition(":")
        name += mark
        if name == _ROWS:
            rows = tuple(int(text) for text in rest.split() if text.isdigit())
        elif name == _MISSING:
            missing = _counts(rest)
        elif name == _VALUES:
            values = tuple(rest.split())
        elif name == _BARS:
            others.append(f"The picture shows the {rest.strip()} bars.")
        elif line.strip() and not _FORM.fullmatch(line):
            others.append(line.strip())
    return PrintedLines(rows, missing, values, tuple(others[:_MOST_OTHERS]))


def _counts(text: str) -> dict[str, int]:
    found = literal(text)
    if not isinstance(found, dict):
        return {}
    return {str(name): count for name, count in found.items() if isinstance(count, int)}


def number(text: str) -> str | None:
    """Return a number or day as it is shown; empty for a missing value, None for other text."""
    text = text.strip()
    wrapped = _WRAPPED.fullmatch(text)
    text = wrapped[1] if wrapped else text
    if text in _ABSENT:
        return ""
    if _NUMBER.fullmatch(text):
        return _shown(text)
    time = _TIME.fullmatch(text)
    if time is None:
        return None
    return time[1] if time[2] in {None, "00:00:00"} else f"{time[1]} {time[2]}"


def _shown(text: str) -> str:
    """Return a number with separators of thousands and at least six significant digits."""
    if text.lstrip("+-").isdigit():
        whole = int(text)
        return f"{whole:,}" if abs(whole) >= _UNGROUPED else str(whole)
    value = float(text)
    if not math.isfinite(value):
        return str(value)
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{_DIGITS}g}"
    decimals = max(2, _DIGITS - 1 - math.floor(math.log10(abs(value)))) if value else 0
    shown = f"{value:,.{decimals}f}" if abs(value) >= _UNGROUPED else f"{value:.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def table_text(text: str) -> str:
    """Return a printed table without row numbers and without times that are all midnight."""
    if set(_CLOCK.findall(text)) == {" 00:00:00"}:
        text = text.replace(" 00:00:00", " " * len(" 00:00:00"))
    lines = [line.rstrip() for line in text.splitlines()]
    end = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
    head, *rows = lines[:end] or [""]
    is_wrapped = head.endswith("\\")
    if rows and not is_wrapped:
        # A report may have cut the blanks before the first heading.
        head = head.rjust(max(map(len, rows)))
        lines[0] = head
    numbers = [match for row in rows if (match := _ROW_NUMBER.match(row))]
    if not rows or len(numbers) < len(rows) or is_wrapped:
        return "\n".join(lines)
    width = max(match.end() for match in numbers)
    if head[:width].strip():
        return "\n".join(lines)
    kept = [line[width:] for line in lines[:end]]
    indent = min(len(line) - len(line.lstrip()) for line in kept if line.strip())
    return "\n".join([*(line[indent:] for line in kept), *lines[end:]])


def literal(text: str) -> object:
    """Return the value that a printed literal is of; None for other text."""
    try:
        return literal_value(text.strip())
    except (ValueError, SyntaxError):
        return None


_COUNTS = {"count", "nunique", "missing"}


def answer(understood: Understood, output: str, result: str, artifacts: Sequence[str] = ()) -> str:
    """Return the answer: the reading in words, its result once, pictures, and notes.

    `output` is the text that the cell printed, `result` the value of its last expression as text.
    """
    reading = understood.reading
    if isinstance(reading, Python | Sql):
        body = [fenced(text) for text in (output, result) if text.strip()]
        parts = [f"{capital(in_words(reading))}:", *body] if body else ["The code ran."]
        return "\n\n".join([*parts, *_saved(artifacts)])
    printed = read_printed(output)
    empty = _no_rows(reading, printed)
    if empty:
        parts = [empty]
    else:
        heading = f"{capital(in_words(reading))}{_rows_note(reading, printed)}"
        parts = [heading, *_body(reading, printed, result), *_saved(artifacts)]
    return "\n\n".join([*parts, *_notes(understood, printed)])


def _no_rows(reading: Reading, printed: PrintedLines) -> str:
    """Return that there are no rows to compute from; empty where there are."""
    if not isinstance(reading, Summary | Rows | TableView) or 0 not in printed.rows:
        return ""
    if isinstance(reading, Summary) and isinstance(reading.then, Contrast) and not reading.keys:
        side = reading.then.first if printed.rows[0] == 0 else reading.then.second
        where = side if reading.where is None else And((side, reading.where))
        return f"There are no rows{where_words(where)}."
    if _counts_rows(reading):
        return ""
    if isinstance(reading, TableView) and reading.view == "outliers":
        return f"There are no {in_words(reading)}."
    if reading.where is None:
        return "There are no rows: the table is empty."
    return f"There are no rows{where_words(reading.where)}."


def _counts_rows(reading: Reading) -> bool:
    """Return whether the answer about no rows is zero."""
    if not isinstance(reading, Summary) or reading.keys or reading.then is not None:
        return False
    return all(measure.function in _COUNTS for measure in reading.measures)


def _rows_note(reading: Reading, printed: PrintedLines) -> str:
    if not printed.rows:
        return ""
    if len(printed.rows) > 1:
        counts = " and ".join(f"{count:,}" for count in printed.rows)
        note = f"{counts} rows"
    else:
        note = counted(printed.rows[0], "row")
    without = [
        f"{count:,} without {column_name(name)}" for name, count in printed.missing.items() if count
    ]
    is_cut = isinstance(reading, Rows) and reading.rank is None and not reading.chart
    if is_cut and printed.rows[0] > DEFAULT_ROWS:
        place = "last" if isinstance(reading, Rows) and reading.from_end else "first"
        without.append(f"the {place} {DEFAULT_ROWS} are shown")
    return f" ({', '.join([note, *without])})"


def _body(reading: Reading, printed: PrintedLines, result: str) -> list[str]:
    text = result.strip("\n")
    if not text.strip():
        return []
    if text.startswith("Empty DataFrame"):
        return ["There is nothing to show: no row or group has a value."]
    value = number(text)
    if value is not None:
        if value == "":
            return ["There is no value to compute it from."]
        return [_value(reading, printed, value)]
    if isinstance(reading, FileListing):
        shown = _names(text)
    elif isinstance(reading, TableView) and reading.view == "shape":
        shown = _sizes(text)
    elif "\n" in text:
        shown = _winner(reading, text) or fenced(table_text(text))
    else:
        plain = literal(text)
        shown = shown_text(plain if isinstance(plain, str) else text)
    return [shown]


def _sizes(text: str) -> str:
    """Return the sizes of a table that are printed as ``(8, 7)``."""
    sizes = [int(size) for size in re.findall(r"\d+", text)]
    counts = [counted(size, noun) for size, noun in zip(sizes, ("row", "column"), strict=False)]
    return f"**{', '.join(counts)}**"


def _names(text: str) -> str:
    """Return the names in a printed list of files."""
    names = literal(text)
    if not isinstance(names, list):
        return fenced(text)
    files = counted(len(names), "file")
    return f"**{files}**: {', '.join(column_name(str(name)) for name in names)}"


def _value(reading: Reading, printed: PrintedLines, value: str) -> str:
    then = reading.then if isinstance(reading, Summary) else None
    is_percent = isinstance(then, Share) or (isinstance(then, Contrast) and then.is_relative)
    if is_percent and abs(share := float(value.replace(",", ""))) >= 1:
        value = number(f"{share:.2f}") or value
    shown = f"**{value}{' %' if is_percent else ''}**"
    sides = [number(text) for text in printed.values]
    if len(sides) == 2 and all(sides):
        shown += f" ({sides[0]} {'against' if is_percent else 'minus'} {sides[1]})"
    return shown + (" (an infinite value is among them)" if value.endswith("inf") else "")


def _winner(reading: Reading, text: str) -> str:
    """Return the names of the first group, or of all that share its value, as a sentence."""
    if not isinstance(reading, Summary) or not reading.names_winner or len(reading.keys) != 1:
        return ""
    rows = [line.rsplit(None, 1) for line in text.splitlines()[2:] if line.strip()]
    values = {row[-1] for row in rows}
    if len(reading.measures) != 1 or len(values) != 1 or any(len(row) != 2 for row in rows):
        return ""
    value = number(values.pop())
    if not value or len(rows) > 10 or text.splitlines()[1].split() == []:
        return ""
    names = [shown_text(row[0]) for row in rows]
    return f"{listed(names)}, {'each ' if len(names) > 1 else ''}with {value}"


def _saved(artifacts: Sequence[str]) -> list[str]:
    return [f"Saved: {', '.join(map(column_name, artifacts))}"] if artifacts else []


def unused_note(understood: Understood) -> list[str]:
    """Return the sentence on the words that a reading has no use for; none without any."""
    words = ", ".join(map(value_text, understood.unused))
    return [f"I did not use: {words}."] if words else []


def _notes(understood: Understood, printed: PrintedLines) -> list[str]:
    """Return the words that were not used, the decisions, and other printed lines."""
    others = (*understood.notes, *printed.others)
    inert = (inert_markdown(" ".join(note.split())) for note in others)
    return [*unused_note(understood), *(note.replace("&#36;", "$") for note in inert)]
