"""Reads a database in the schema of the system this memory descends from.

That schema (tables `branches`, `core_kv`, `core_meta`, `events`, `archival`,
`inherited_exclusions`, `inherited_summaries`, see docs/memory.md) has no sequence numbers and no
snapshots: a row of an ancestor is seen by all its descendants at once. Its rows get numbers in
the order of their times, and its inner branches become live, so every branch sees the same rows
as before. Each row is accounted for, see `migration_report`.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.memory.branched.migration.migration_report import MigrationReport
from taskweaver.memory.branched.migration.original_digests import OriginalDigests
from taskweaver.memory.branched.migration.original_tree import copy_branches, id_of, text_of
from taskweaver.utils.sqlite_files import (
    column_names,
    drop_programs,
    insert_row,
    quoted_name,
    table_names,
)

_TABLES = ("branches", "core_kv", "core_meta", "events", "archival")
_OPTIONAL = ("inherited_exclusions", "inherited_summaries")
_WITH_BRANCHES = ("core_kv", "events", "archival", "inherited_summaries")
_INDEX = re.compile(r"archival_fts(?:_data|_idx|_docsize|_config|_content)?")
_PREFIX = "original_"
_DIGEST_KEY = "CoreDigest"
_REFERENCE = re.compile(r"\(ref: (\d{1,18})\)")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row on its way: its time, its place now, and its id in the original."""

    time: float
    table: str
    values: dict[str, object]
    id: int | None = None


def is_original(tables: Iterable[str]) -> bool:
    """Return whether these are the tables of the original."""
    return {"branches", "core_kv", "events", "archival"} <= set(tables)


def set_aside(connection: sqlite3.Connection, report: MigrationReport) -> None:
    """Rename the original's tables, so that today's can take their names, in a transaction.

    The report names the tables that go.
    """
    for kind, name in drop_programs(connection):
        report.changed.append(f"the {kind} {name!r} was not taken over")
    others = set(table_names(connection)) - {*_TABLES, *_OPTIONAL}
    connection.execute("DROP TABLE IF EXISTS archival_fts")
    for name in sorted(others):
        connection.execute(f"DROP TABLE IF EXISTS {quoted_name(name)}")
        if _INDEX.fullmatch(name) is None:
            report.changed.append(f"the table {name!r}, not of the original, was not taken over")
    for name in _present(connection, (*_TABLES, *_OPTIONAL)):
        connection.execute(f"ALTER TABLE {name} RENAME TO {_PREFIX}{name}")
    indexes = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    )
    for (name,) in indexes.fetchall():
        connection.execute(f"DROP INDEX {quoted_name(name)}")


def copy_rows(connection: sqlite3.Connection, report: MigrationReport, *, now: float) -> None:
    """Copy the rows into today's tables, in a transaction, and drop the original's.

    `now` is the time for branches that have none.
    """
    report.migrated_at = now
    numbers = copy_branches(
        connection, f"{_PREFIX}branches", _named_branches(connection), report, now
    )
    copied = (_core, _events, _archival)
    rows = sorted(
        (row for copy in copied for row in copy(connection, numbers, report)),
        key=lambda row: row.time,
    )
    ids: dict[str, dict[int, int]] = {"events": {}, "archival": {}}
    for seq, row in enumerate(rows, start=1):
        if row.id is not None:
            ids[row.table][row.id] = seq
    for seq, row in enumerate(rows, start=1):
        insert_row(connection, row.table, {"seq": seq, **_renumbered(row, seq, ids, report)})
    report.ids = ids
    branches = dict(connection.execute("SELECT seq, branch_id FROM events"))
    events = {old: (seq, branches[seq]) for old, seq in ids["events"].items()}
    last = OriginalDigests(connection, numbers, events, report).copy(
        _found(connection, "inherited_summaries"),
        _found(connection, "inherited_exclusions"),
        len(rows),
    )
    connection.execute("UPDATE clock SET seq = ?", (last,))
    # Up to here only: the digests and exclusions that follow are no ancestor's to hand on.
    connection.execute("UPDATE branches SET fork_seq = ?", (len(rows),))
    for name in _present(connection, [_PREFIX + name for name in (*_TABLES, *_OPTIONAL)]):
        connection.execute(f"DROP TABLE {name}")


def _named_branches(connection: sqlite3.Connection) -> set[str | None]:
    """Return the branches that rows belong to."""
    tables = _present(connection, [_PREFIX + name for name in _WITH_BRANCHES])
    return {
        id_of(raw)
        for table in tables
        for (raw,) in connection.execute(f"SELECT DISTINCT branch_id FROM {table}")
    }


def _core(
    connection: sqlite3.Connection, numbers: Mapping[str | None, int], report: MigrationReport
) -> Iterator[_Row]:
    meta = _meta(connection, report)
    rows = connection.execute(f"SELECT branch_id, key, value, updated_at FROM {_PREFIX}core_kv")
    for raw, key, value, time in rows.fetchall():
        place = (id_of(raw), text_of(key))
        name = f"{place[0]}/{place[1]}"
        importance, ttl = meta.get(place, (None, None))
        if meta.pop(place, None) is not None:
            report.take("core_meta", "the importance of a key")
        if ttl:
            report.changed.append(
                f"core key {name} does not end: the original kept its ttl {ttl!r} unused"
            )
        if value is None:
            report.leave("core_kv", name, "it has no value")
            continue
        report.take("core_kv", "a core key")
        values = {
            "branch_id": numbers[place[0]],
            "key": place[1],
            "value": text_of(value),
            "importance": min(5, max(1, int(importance or 3))),
            "created_at": float(time or 0),
        }
        yield _Row(float(time or 0), "core_kv", values)
    for place in meta:
        report.leave("core_meta", f"{place[0]}/{place[1]}", "its key does not exist")


def _meta(
    connection: sqlite3.Connection, report: MigrationReport
) -> dict[tuple[str | None, str], tuple[Any, Any]]:
    """Return importance and ttl by branch and key."""
    table = _found(connection, "core_meta")
    if table is None:
        return {}
    ttl_column = "ttl" if "ttl" in column_names(connection, table) else "NULL"
    found: dict[tuple[str | None, str], tuple[Any, Any]] = {}
    rows = connection.execute(f"SELECT branch_id, key, importance, {ttl_column} FROM {table}")
    for raw, key, importance, ttl in rows:
        place = (id_of(raw), text_of(key))
        if place in found:
            name = f"{place[0]}/{place[1]}"
            report.leave("core_meta", name, "another row is of the same key")
        found.setdefault(place, (importance, ttl))
    return found


def _events(
    connection: sqlite3.Connection, numbers: Mapping[str | None, int], report: MigrationReport
) -> Iterator[_Row]:
    names = column_names(connection, f"{_PREFIX}events")
    extras = [name for name in ("task_hint", "memory_size") if name in names]
    columns = ", ".join(["id", "branch_id", "kind", "text", "tags", "created_at", *extras])
    for row in connection.execute(f"SELECT {columns} FROM {_PREFIX}events ORDER BY id"):
        id_, raw, kind, text, tags, time, *more = row
        data = {name: value for name, value in zip(extras, more, strict=True) if value}
        values = {
            "branch_id": numbers[id_of(raw)],
            "kind": text_of(kind) or "event",
            "text": text_of(text),
            "tags": _tags(tags),
            "data": json.dumps(data, ensure_ascii=False, default=text_of),
            "created_at": float(time or 0),
        }
        report.take("events", "an event")
        yield _Row(float(time or 0), "events", values, int(id_))


def _archival(
    connection: sqlite3.Connection, numbers: Mapping[str | None, int], report: MigrationReport
) -> Iterator[_Row]:
    columns = "id, branch_id, text, tags, created_at"
    for id_, raw, text, tags, time in connection.execute(
        f"SELECT {columns} FROM {_PREFIX}archival ORDER BY id"
    ):
        shown = text_of(text)
        values = {
            "branch_id": numbers[id_of(raw)],
            "text": shown,
            "text_hash": zlib.crc32(shown.encode()),
            "tags": _tags(tags),
            "meta": "{}",
            "created_at": float(time or 0),
        }
        report.take("archival", "a record")
        yield _Row(float(time or 0), "archival", values, int(id_))


def _renumbered(
    row: _Row, seq: int, ids: Mapping[str, Mapping[int, int]], report: MigrationReport
) -> dict[str, object]:
    """Return the values of a row with the numbers that rows have now."""
    if row.table == "archival":
        return {**row.values, "record": seq}
    if row.table != "core_kv" or row.values["key"] != _DIGEST_KEY:
        return row.values

    def renumber(match: re.Match[str]) -> str:
        new = ids["archival"].get(int(match[1]))
        if new is None:
            report.changed.append(f"a {_DIGEST_KEY} refers to record {match[1]}: there is none")
            return match[0]
        return f"(ref: {new})"

    return {**row.values, "value": _REFERENCE.sub(renumber, str(row.values["value"]))}


def _tags(text: object) -> str:
    try:
        tags = json.loads(text_of(text)) if text else []
    except ValueError:
        tags = [text_of(text)]
    if not isinstance(tags, list):
        tags = [tags]
    # JSON may hold half a character, which the file cannot.
    return (
        json.dumps([str(tag) for tag in tags], ensure_ascii=False).encode(errors="replace").decode()
    )


def _found(connection: sqlite3.Connection, name: str) -> str | None:
    """Return a table of the original by its present name, or None if there is none."""
    return next(iter(_present(connection, [_PREFIX + name])), None)


def _present(connection: sqlite3.Connection, names: Iterable[str]) -> list[str]:
    tables = table_names(connection)
    return [name for name in names if name in tables]
