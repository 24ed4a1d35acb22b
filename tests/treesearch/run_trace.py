"""The trace of a run: its prompts, files, log and memory, without times, paths and random ids."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_TIMES = re.compile(
    r'("(?:[a-z_]*(?:timestamp|_at|seconds|seconds_of_best|elapsed)|at|ts)": ?)(?:-?[\d.e+-]+|TIME)'
)
_UNSTEADY = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b(?:post|round|atta)-[\w-]+"), "ID"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T_ ]\d\d[:-]\d\d[:-]\d\d(?:[.,]\d+)?(?:Z|\+00:00)?"), "DATE"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:s|seconds|min)\b"), "T s"),
    (re.compile(r"\b\d\d:\d\d UTC|\bseconds [\d.]+"), "T"),
    (re.compile(r"\b[\d.]+ (?=tasks in the minute before|GB/s read and written)"), "N "),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
    (re.compile(r"\b1[789]\d{8}(?:\.\d+)?\b"), "TIME"),
    (re.compile(r"pytest-\d+|/tmp/[\w.-]+"), "TEMP"),
)
_NOT_COMPARED = {".sqlite", ".sqlite-wal", ".sqlite-shm", ".lock", ".png", ".html",
                 "memory_primitive.jsonl"}  # fmt: skip
_UNSTEADY_COLUMNS = re.compile(r"_at$|^now$|^id$|uuid|started|time|hash|digest$")


def steady(text: str, project: Path) -> str:
    """Return text without what differs from one run to the next."""
    found = _TIMES.sub(r"\1 0", text.replace(str(project), "PROJECT"))
    for pattern, name in _UNSTEADY:
        found = pattern.sub(name, found)
    return found


def trace(project: Path, folder: Path, requests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the trace of a run as named texts.

    Args:
        project: Folder of the project.
        folder: Folder of the run.
        requests: Bodies of the requests to its models, in order.
    """
    texts = {
        f"file {path.relative_to(folder)}": _ordered(path.read_text("utf-8", "replace"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in _NOT_COMPARED and path.name not in _NOT_COMPARED
    }
    for number, body in enumerate(requests):
        texts[f"request {number:03}"] = json.dumps(body, indent=1, sort_keys=True)
    for path in sorted(folder.rglob("*.sqlite")):
        texts |= {f"table {name}": text for name, text in _tables(path)}
    return {name: steady(text, project) for name, text in texts.items()}


def _ordered(text: str) -> str:
    """Return text with the costs of calls at its end: their threads write them beside the nodes."""
    return "".join(sorted(text.splitlines(keepends=True), key=lambda line: '{"t":"call"' in line))


def _tables(path: Path) -> Iterable[tuple[str, str]]:
    connection = sqlite3.connect(path)
    try:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
            " AND name NOT LIKE '%fts%' AND name NOT LIKE '%search%' ORDER BY name"
        ).fetchall()
        for (name,) in names:
            rows = connection.execute(f'SELECT * FROM "{name}"')
            columns = [column[0] for column in rows.description]
            yield name, "\n".join(_row(columns, row) for row in rows)
    finally:
        connection.close()


def _row(columns: Sequence[str], row: Sequence[Any]) -> str:
    shown = {
        name: value if isinstance(value, str | int | float | None) else str(value)
        for name, value in zip(columns, row, strict=True)
        if not _UNSTEADY_COLUMNS.search(name)
    }
    return json.dumps(shown, ensure_ascii=False)
