"""The answer to a request, made of its reading and the printed outcome of its cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.analyst.readings.condition import And
from taskweaver.analyst.readings.reading import (
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
from taskweaver.analyst.wording.printed import (
    PrintedLines,
    literal,
    number,
    read_printed,
    table_text,
)
from taskweaver.analyst.wording.requests import DEFAULT_ROWS, in_words, where_words
from taskweaver.utils.markup.inert_markdown import inert_markdown
from taskweaver.utils.text import counted, fenced

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
