"""Outlines of data files without a kernel, and first questions about them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from taskweaver.tables.files.profile import ColumnProfile, Kind, TableId, TableProfile


class _Question(NamedTuple):
    """A question, and what its answer shows."""

    text: str
    shows: str = ""


@dataclass(frozen=True, slots=True)
class FileOutline:
    """Outline of a file."""

    path: Path
    bytes: int
    tables: tuple[TableProfile, ...] = ()
    is_estimate: bool = False
    questions: tuple[_Question, ...] = ()
    problem: str = ""


def first_questions(paths: Iterable[Path]) -> tuple[FileOutline, ...]:
    """Return the outlines of files, with at most three questions each."""
    return tuple(_outline(path) for path in paths)


def _outline(path: Path) -> FileOutline:
    size = path.stat().st_size
    if path.suffix.lower() != ".csv":
        return FileOutline(path, size)
    try:
        with path.open(encoding="utf-8", newline="") as text:
            names, *rows = csv.reader(text)
    except (OSError, ValueError, csv.Error) as error:
        return FileOutline(path, size, problem=str(error))
    cells = list(zip(*rows, strict=False)) or [()] * len(names)
    columns = tuple(map(_column, names, cells))
    words = [one.name for one in columns if one.values]
    numbers = [one.name for one in columns if one.kind == "number"]
    found = (
        []
        if not (words and numbers)
        else [
            _Question(f"Mean {numbers[-1]} per {words[0]} in {path.name}", "bar chart"),
            _Question(f"Which {words[-1]} has the highest {numbers[-1]} in {path.name}?", "table"),
        ]
    )
    table = TableProfile(TableId(path.name), len(rows), columns)
    return FileOutline(path, size, (table,), questions=tuple(found))


def _column(name: str, cells: Sequence[str]) -> ColumnProfile:
    filled = [cell for cell in cells if cell.strip()]
    kind: Kind = "text"
    if all(re.fullmatch(r"-?[\d.]+", cell) for cell in filled):
        kind = "number"
    elif all(re.fullmatch(r"\d{4}[-/]\d\d[-/]\d\d", cell) for cell in filled):
        kind = "time"
    values = sorted(set(filled))
    low, high = (min(filled), max(filled)) if kind == "time" else ("", "")
    is_few = kind == "text" and len(values) <= 30
    return ColumnProfile(name, kind, len(values), 0, low, high, tuple(values) if is_few else None)
