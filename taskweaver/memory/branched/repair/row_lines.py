"""Reads `memory_primitive.jsonl`, whoever wrote its lines, in any order and more than once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.erasure.needles import ERASED, is_mark
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.logs.row_log import (
    BRANCH_COLUMNS,
    JSON_COLUMNS,
    LOGGED,
    ROWS_FILE,
    Range,
)
from taskweaver.memory.branched.repair.salvage import columns_of
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.tiers.archival import text_hash
from taskweaver.memory.branched.upkeep.transfer import ADDED_COLUMNS
from taskweaver.memory.branched.values import dump
from taskweaver.utils.redact import MASK

Row = dict[str, Any]
_MARK = MASK.encode()
_PADDED = re.compile(re.escape(ERASED) + r"(?: +$| +(?= ))")
_HIGHEST = 1 << 53
_SET = {"state", "node_uid"}
"""Columns of a branch that a change sets."""


@dataclass(slots=True)
class LoggedLines:
    """Content of the lines of a log.

    Attributes:
        branches: Branches by number.
        rows: Rows by table and sequence number.
        changes: Changes that added no row, by sequence number.
        skipped: Ranges of sequence numbers of rows that the log leaves out.
        writers: Processes that began and did not end their lines.
        unreadable: Number of lines that are no line of this log.
        masked: Number of rows with a masked secret.
        clashes: Number of lines that give a number in use to another row or branch.
        files: Names of the files whose rows the log has.
        columns: Columns of the tables.
    """

    branches: dict[int, Row] = field(default_factory=dict)
    rows: dict[str, dict[int, Row]] = field(default_factory=lambda: {name: {} for name in LOGGED})
    changes: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    skipped: list[Range] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)
    unreadable: int = 0
    masked: int = 0
    clashes: int = 0
    files: set[str] = field(default_factory=set)
    columns: dict[str, list[str]] = field(default_factory=lambda: columns_of(schema.VERSION))

    @property
    def seqs(self) -> list[Range]:
        """The sequence numbers the log accounts for, as ascending ranges that do not touch."""
        singles = {seq for rows in self.rows.values() for seq in rows} | self.changes.keys()
        found: list[Range] = []
        for first, last in sorted([*self.skipped, *((seq, seq) for seq in singles)]):
            if found and first <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(last, found[-1][1]))
            else:
                found.append((first, last))
        return found


def read_lines(folder: Path, file_name: str = "") -> LoggedLines:
    """Read the log of rows in a folder; with a `file_name`, its lines and those that name none.

    Raises:
        InvalidUpdate: If the log cannot be read.
    """
    lines = LoggedLines()
    path = folder / ROWS_FILE
    try:
        with path.open("rb") as file:
            for text in file:
                _read(lines, text, file_name)
    except OSError as error:
        raise InvalidUpdate(str(path), f"cannot be read: {error.strerror}") from error
    return lines


def _read(lines: LoggedLines, text: bytes, file_name: str) -> None:
    if not text.strip():
        return
    try:
        line = json.loads(text)
        origin = line.get("file")
        if origin:
            lines.files.add(str(origin))
        if origin and file_name not in {"", origin}:
            return
        is_known = _take(lines, line)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        is_known = False
    lines.unreadable += not is_known
    lines.masked += bool(is_known) and _MARK in text


def _take(lines: LoggedLines, line: dict[str, Any]) -> bool:
    """Add a line; return whether it is one of the log's."""
    if "table" in line:
        table, seq = line["table"], _number(line["seq"])
        row = _row(table, seq, line["row"], lines.columns[table])
        former = [rows.pop(seq, None) for rows in lines.rows.values()]
        lines.clashes += any(_is_other(other, row) for other in former)
        lines.rows[table][seq] = row
    elif "branch" in line:
        branch = {name: _plain(line["branch"][name]) for name in BRANCH_COLUMNS}
        branch |= {name: _unpadded(branch[name]) for name in ("name", "node_uid")}
        known = lines.branches.setdefault(_number(branch["id"]), branch)
        lines.clashes += _is_other(known, branch)
    elif "change" in line:
        lines.changes[_number(line["seq"])] = _change(line["change"])
    elif "skip" in line:
        lines.skipped += [(_number(first), _number(last)) for first, last in line["skip"]]
    elif line.get("op") == "open":
        lines.writers.add(str(line["writer"]))
    elif line.get("op") == "close":
        lines.writers.discard(str(line["writer"]))
    else:
        return line.get("op") == "log_lines_lost"
    return True


def _is_other(known: Row | None, row: Row) -> bool:
    """Return whether the row under a number is not the one that another line has there.

    Texts are not compared: one of two lines of a row may be masked.
    """
    if known is None:
        return False
    names = known.keys() & {"branch_id", "created_at"}
    return known.keys() != row.keys() or any(known[name] != row[name] for name in names)


def _row(table: str, seq: int, given: Mapping[str, Any], columns: Sequence[str]) -> Row:
    """Return a row with all columns of its table, which refuses values of other types.

    A record or a value that was erased is hidden, as it is in the memory.
    """
    row = {**ADDED_COLUMNS.get(table, {}), **given, "seq": seq}
    if table == "archival" and is_mark(row["text"]):
        row |= {"text": "", "tags": [], "meta": {}, "is_deleted": 1}
    if table == "core_kv" and is_mark(row["value"] or ""):
        row["value"] = None
    for name, value in row.items():
        row[name] = dump(value) if name in JSON_COLUMNS else _plain(value)
    if table == "archival":
        row["text_hash"] = text_hash(row["text"])
    if row.keys() != set(columns):
        raise ValueError("has other columns than its table")
    _number(row["branch_id"])
    return row


def _change(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change, of which each part has its form."""
    change: dict[str, Any] = {name: _unpadded(_plain(given[name])) for name in _SET & given.keys()}
    change["branches"] = [_number(number) for number in given.get("branches", ())]
    change["kept"] = [(_number(number), int(end)) for number, end in given.get("kept", ())]
    change["rows"] = [_number(seq) for seq in given.get("rows", ())]
    return change


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()  # raises for half a character, which no database holds
    elif value is not None and not isinstance(value, int | float):
        raise TypeError("is no value of a column")
    return value


def _unpadded(name: Any) -> Any:
    """Return a name without the spaces that bring a mark in a log to the length of its text."""
    return _PADDED.sub(ERASED, name) if isinstance(name, str) else name


def _number(value: Any) -> int:
    if type(value) is not int or not 0 < value < _HIGHEST:
        raise ValueError("is no sequence number")
    return value
