"""The text that a cell of the analyst prints and shows, read back."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from taskweaver.utils.parsing import literal_value

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
