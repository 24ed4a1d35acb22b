"""Reads a database in the schema of the system this memory descends from.

That schema (tables `branches`, `core_kv`, `core_meta`, `events`, `archival`,
`inherited_exclusions`, `inherited_summaries`, see docs/memory.md) has no sequence numbers and no
snapshots: what an ancestor writes is seen by all its descendants at once. Its rows get numbers in
the order of their times, and its inner branches become live, so every branch sees what it saw.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping

_TABLES = ("branches", "core_kv", "core_meta", "events", "archival")
_OPTIONAL = ("inherited_exclusions", "inherited_summaries")
_PREFIX = "original_"


def is_original(tables: Iterable[str]) -> bool:
    """Return whether these are the tables of the original."""
    return {"branches", "core_kv", "events", "archival"} <= set(tables)


def set_aside(connection: sqlite3.Connection) -> None:
    """Rename the original's tables, so that today's can take their names.

    Everything else goes, triggers and views first, so that nothing of the file's own is run.
    """
    for kind in ("trigger", "view"):
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))
        for (name,) in names.fetchall():
            connection.execute(f"DROP {kind} {_quoted(name)}")
    connection.execute("DROP TABLE IF EXISTS archival_fts")
    for name in _others(connection):
        connection.execute(f"DROP TABLE IF EXISTS {_quoted(name)}")
    for name in _present(connection, (*_TABLES, *_OPTIONAL)):
        connection.execute(f"ALTER TABLE {name} RENAME TO {_PREFIX}{name}")
    indexes = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    )
    for (name,) in indexes.fetchall():
        connection.execute(f"DROP INDEX {_quoted(name)}")


def _others(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    known = {*_TABLES, *_OPTIONAL}
    return [name for (name,) in rows if name not in known and not name.startswith("sqlite_")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def copy_rows(connection: sqlite3.Connection, *, now: float) -> None:
    """Copy the rows into our tables, and drop the original's.

    Args:
        connection: Open, in a transaction.
        now: Time for rows that have none.
    """
    numbers = _copy_branches(connection, now)
    rows = sorted(
        [
            *_core(connection, numbers),
            *_events(connection, numbers),
            *_archival(connection, numbers),
            *_summaries(connection, numbers),
        ],
        key=lambda row: row[0],
    )
    event_seqs: dict[int, int] = {}
    for seq, (_, table, values, event_id) in enumerate(rows, start=1):
        if event_id is not None:
            event_seqs[event_id] = seq
        if table == "archival":
            values = {**values, "record": seq}
        _insert(connection, table, {"seq": seq, **values})
    last = _copy_exclusions(connection, numbers, event_seqs, len(rows))
    connection.execute("UPDATE clock SET seq = ?", (last,))
    connection.execute("UPDATE branches SET fork_seq = ?", (last,))
    for name in _present(connection, [_PREFIX + name for name in (*_TABLES, *_OPTIONAL)]):
        connection.execute(f"DROP TABLE {name}")


_Row = tuple[float, str, dict[str, object], int | None]
"""Time, table, values, and the id of an event."""


def _copy_branches(connection: sqlite3.Connection, now: float) -> dict[str, int]:
    rows = connection.execute(
        f"SELECT id, parent_id, node_uid, created_at FROM {_PREFIX}branches ORDER BY created_at"
    ).fetchall()
    numbers = {name: number for number, (name, *_) in enumerate(rows, start=1)}
    parents = {parent for _, parent, *_ in rows}
    for name, _, uid, created in rows:
        values = {
            "id": numbers[name],
            "name": name,
            "node_uid": uid,
            "fork_seq": 0,
            "live": int(name in parents),
            "created_at": float(created if created is not None else now),
        }
        _insert(connection, "branches", values)
    for (
        name,
        parent,
        *_,
    ) in rows:  # a parent that does not exist was accepted; such a branch is a root
        if parent in numbers and parent != name:
            connection.execute(
                "UPDATE branches SET parent_id = ? WHERE id = ?", (numbers[parent], numbers[name])
            )
    return numbers


def _core(connection: sqlite3.Connection, numbers: dict[str, int]) -> Iterable[_Row]:
    rows = connection.execute(
        f"SELECT k.branch_id, k.key, k.value, k.updated_at, m.importance FROM {_PREFIX}core_kv k"
        f" LEFT JOIN {_PREFIX}core_meta m ON m.branch_id = k.branch_id AND m.key = k.key"
    )
    for branch, key, value, time, importance in rows:
        if branch in numbers and value is not None:
            values = {
                "branch_id": numbers[branch],
                "key": str(key),
                "value": str(value),
                "importance": min(5, max(1, int(importance or 3))),
                "created_at": float(time or 0),
            }
            yield float(time or 0), "core_kv", values, None


def _events(connection: sqlite3.Connection, numbers: dict[str, int]) -> Iterable[_Row]:
    names = {row[1] for row in connection.execute(f"PRAGMA table_info({_PREFIX}events)")}
    extras = [name for name in ("task_hint", "memory_size") if name in names]
    columns = ", ".join(["id", "branch_id", "kind", "text", "tags", "created_at", *extras])
    for row in connection.execute(f"SELECT {columns} FROM {_PREFIX}events ORDER BY id"):
        id_, branch, kind, text, tags, time, *more = row
        if branch in numbers:
            data = {name: value for name, value in zip(extras, more, strict=True) if value}
            values = {
                "branch_id": numbers[branch],
                "kind": str(kind or "event"),
                "text": str(text or ""),
                "tags": _tags(tags),
                "data": json.dumps(data, ensure_ascii=False),
                "created_at": float(time or 0),
            }
            yield float(time or 0), "events", values, int(id_)


def _archival(connection: sqlite3.Connection, numbers: dict[str, int]) -> Iterable[_Row]:
    columns = "branch_id, text, tags, created_at"
    for branch, text, tags, time in connection.execute(
        f"SELECT {columns} FROM {_PREFIX}archival ORDER BY id"
    ):
        if branch in numbers:
            values = {
                "branch_id": numbers[branch],
                "text": str(text or ""),
                "text_hash": zlib.crc32(str(text or "").encode()),
                "tags": _tags(tags),
                "meta": "{}",
                "created_at": float(time or 0),
            }
            yield float(time or 0), "archival", values, None


def _summaries(connection: sqlite3.Connection, numbers: dict[str, int]) -> Iterable[_Row]:
    """The original's summaries of inherited events become events, which is how they were shown."""
    if not _present(connection, [_PREFIX + "inherited_summaries"]):
        return
    columns = "branch_id, summary_text, created_at"
    for branch, text, time in connection.execute(
        f"SELECT {columns} FROM {_PREFIX}inherited_summaries ORDER BY id"
    ):
        if branch in numbers:
            values = {
                "branch_id": numbers[branch],
                "kind": "inherited_summary",
                "text": str(text or ""),
                "tags": "[]",
                "data": "{}",
                "created_at": float(time or 0),
            }
            yield float(time or 0), "events", values, None


def _copy_exclusions(
    connection: sqlite3.Connection, numbers: dict[str, int], events: dict[int, int], seq: int
) -> int:
    if not _present(connection, [_PREFIX + "inherited_exclusions"]):
        return seq
    rows = connection.execute(
        f"SELECT branch_id, excluded_event_id FROM {_PREFIX}inherited_exclusions"
    )
    for branch, event in rows.fetchall():
        if branch in numbers and event in events:
            seq += 1
            values = {"seq": seq, "branch_id": numbers[branch], "event_seq": events[event]}
            _insert(connection, "exclusions", values)
    return seq


def _tags(text: object) -> str:
    try:
        tags = json.loads(str(text)) if text else []
    except ValueError:
        tags = [str(text)]
    if not isinstance(tags, list):
        tags = [tags]
    return json.dumps([str(tag) for tag in tags], ensure_ascii=False)


def _insert(connection: sqlite3.Connection, table: str, values: Mapping[str, object]) -> None:
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


def _present(connection: sqlite3.Connection, names: Iterable[str]) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {name for (name,) in rows}
    return [name for name in names if name in tables]
