"""First questions of files: their tables, and requests that the offline analyst can answer.

No kernel runs and no model is asked: the files are read in this process. The analyst is found by
its entry point, as a model is, since nothing below the doors knows it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from taskweaver.memory.suggestions import Suggestion
from taskweaver.tables.files.profile import TableProfile
from taskweaver.utils.data_files import TEXTS, is_data_file

MOST_BYTES = 200 << 20
"""Size of the largest file that is read at all."""
_WHOLE_BYTES, _BEGINNING_BYTES = 16 << 20, 2 << 20
_MOST_TABLES, _MOST_COLUMNS = 20, 300


class Asker(Protocol):
    """Model of the entry points ``taskweaver.models`` that knows questions about tables."""

    def first_questions(
        self, tables: Sequence[TableProfile], others: Sequence[str]
    ) -> tuple[Suggestion, ...]:
        """Return questions about the tables of a file, which stands beside other files."""
        ...


@dataclass(frozen=True, slots=True)
class FileOutline:
    """Outline of a file.

    Attributes:
        path: Path of the file.
        bytes: Size.
        tables: Profiles of its tables; none for a file that holds none or is too large.
        first: First rows of a file of separated text, as they are written.
        is_estimate: Whether rows are estimated, and other facts are of its beginning.
        questions: Requests about it, each of which can be answered.
        problem: Reason why it could not be read; empty for none.
    """

    path: Path
    bytes: int = 0
    tables: tuple[TableProfile, ...] = ()
    first: tuple[tuple[str, ...], ...] = ()
    is_estimate: bool = False
    questions: tuple[Suggestion, ...] = ()
    problem: str = ""


def first_questions(paths: Iterable[Path]) -> tuple[FileOutline, ...]:
    """Return outlines of files with questions, which name the file if there are several.

    The first call imports pandas. A file that cannot be read has a problem.
    """
    given = list(paths)
    askers: list[Asker] = [
        model()
        for entry in entry_points(group="taskweaver.models")
        if hasattr(model := entry.load(), "first_questions")
    ]
    names = [path.name for path in given if is_data_file(path.name)]
    found = []
    for outline in map(_outline, given):
        others = [name for name in names if name != outline.path.name]
        asked = [
            question
            for asker in askers
            if outline.tables
            for question in asker.first_questions(outline.tables, others)
        ]
        found.append(replace(outline, questions=tuple(asked)))
    return tuple(found)


def _outline(path: Path) -> FileOutline:
    try:
        size_bytes = path.stat().st_size
    except OSError as error:
        return FileOutline(path, problem=error.strerror or str(error))
    if not is_data_file(path.name) or size_bytes > MOST_BYTES:
        return FileOutline(path, size_bytes)
    is_text = path.suffix.lower().lstrip(".") in TEXTS and path.suffix.lower() != ".json"
    try:
        # Profiles of many columns would take minutes.
        is_wide = is_text and _columns(path) > _MOST_COLUMNS
        if is_wide or (size_bytes > _WHOLE_BYTES and not is_text):
            return FileOutline(path, size_bytes)
        if size_bytes <= _WHOLE_BYTES:
            return _read(path)
        with tempfile.TemporaryDirectory() as folder, path.open("rb") as file:
            head, _, _ = file.read(_BEGINNING_BYTES).rpartition(b"\n")
            copy = Path(folder) / path.name
            copy.write_bytes(head)
            factor = size_bytes / max(len(head), 1)
            found = _read(copy)
            tables = tuple(replace(one, rows=round(one.rows * factor)) for one in found.tables)
            return replace(found, path=path, bytes=size_bytes, tables=tables, is_estimate=True)
    except Exception as error:  # noqa: BLE001 - readers fail in many ways on broken files
        return FileOutline(path, size_bytes, problem=str(error).partition("\n")[0])


def _columns(path: Path) -> int:
    """Return about how many columns the first line of a text has."""
    with path.open("rb") as file:
        line = file.readline(_BEGINNING_BYTES)
    return 1 + max(line.count(mark) for mark in (b",", b";", b"\t", b"|"))


def _read(path: Path) -> FileOutline:
    from taskweaver.tables.profiles.profiling import bars_of, profiled
    from taskweaver.tables.reading import load, parts_of

    found: list[TableProfile] = []
    first: tuple[tuple[str, ...], ...] = ()
    for part in parts_of(path)[:_MOST_TABLES]:
        table = load(path, part)
        profile = profiled(table.frame, path.name, part, "")
        pairs = zip(table.frame.columns, profile.columns, strict=True)
        columns = tuple(replace(one, bars=bars_of(table.frame[name], one)) for name, one in pairs)
        found.append(replace(profile, columns=columns))
        first = table.first
    return FileOutline(path, path.stat().st_size, tuple(found), first)
