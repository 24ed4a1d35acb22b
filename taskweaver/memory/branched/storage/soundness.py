"""Checks of a memory file: SQLite's own, the schema, each row, and invariants between rows.

A damaged file can raise anything where it is read: SQLite names most damage, but a number in place
of a text, or a text that is no JSON, shows up in the code that uses the value. So an unexpected
error is taken for damage only if these checks find some; see `Database`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate, is_of_the_system
from taskweaver.memory.branched.storage.schema import TIERS
from taskweaver.memory.branched.storage.schema_check import schema_problems
from taskweaver.utils.sqlite_files import READ_ERRORS

UNEXPECTED = (
    sqlite3.Error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""Errors that the values of a damaged file raise in the code that reads them."""
NUMBERED = (*TIERS, "injections")
"""Tables whose rows have numbers of the clock."""
JSON_COLUMNS: dict[str, dict[str, type]] = {
    "events": {"tags": list, "data": dict},
    "archival": {"tags": list, "meta": dict},
    "posts": {"body": dict},
    "digests": {"kinds": dict},
    "injections": {"shown": dict},
}
"""Columns that hold JSON, with the form of it, by table."""
_HIGHEST_SEQ = 1 << 53
_INVARIANTS = {
    "a branch was forked from the future": (
        "SELECT name FROM branches WHERE fork_seq > (SELECT seq FROM clock)"
    ),
    "a branch is older than its parent": "SELECT name FROM branches WHERE parent_id >= id",
    "an event repeats one that is not there": (
        "SELECT seq FROM events WHERE repeats IS NOT NULL AND repeats NOT IN"
        " (SELECT seq FROM events)"
    ),
    "a record has a newer row for its first version": (
        "SELECT seq FROM archival WHERE record > seq"
    ),
    "a digest covers the future": "SELECT seq FROM digests WHERE up_to_seq >= seq",
    "a summary covers the future": "SELECT seq FROM summaries WHERE up_to_seq >= seq",
}


def problems(connection: sqlite3.Connection) -> list[str]:
    """Return the problems of a file, a line each; empty when all is well.

    Args:
        connection: Open on the file; it only reads.

    Raises:
        sqlite3.Error: If the file cannot be read now: another process holds it, or the disk
            fails.
    """
    checks: dict[str, Callable[[sqlite3.Connection], list[str]]] = {
        "the file": _structure,
        "the schema": schema_problems,
        "the clock": _clock,
        "the rows": invariants,
        "the values": _values,
    }
    found = []
    for name, check in checks.items():
        try:
            found += check(connection)
        except READ_ERRORS as error:
            if is_of_the_system(error):
                raise
            found.append(f"{name} cannot be read: {error}")
    return found


def _structure(connection: sqlite3.Connection) -> list[str]:
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    lines = [text for text in found if text != "ok"]
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        lines.append(f"{table} row {row} refers to a row of {parent} that is not there")
    return lines


def _clock(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT one, seq FROM clock").fetchall()
    if len(rows) != 1 or rows[0][0] != 1:
        return [f"the clock has {len(rows)} rows"]
    seq = rows[0][1]
    is_good = isinstance(seq, int) and 0 <= seq < _HIGHEST_SEQ
    return [] if is_good else [f"the clock stands at {seq!r:.40}"]


def invariants(connection: sqlite3.Connection) -> list[str]:
    """Return the violated invariants between rows."""
    found = [
        f"{problem}: {row[0]}"
        for problem, query in _INVARIANTS.items()
        for row in connection.execute(query).fetchmany(5)
    ]
    union = " UNION ALL ".join(f"SELECT seq FROM {table}" for table in NUMBERED)
    for (seq,) in connection.execute(
        f"SELECT seq FROM ({union}) GROUP BY seq HAVING count(*) > 1 LIMIT 5"
    ):
        found.append(f"the sequence number {seq} is used twice")
    (late,) = connection.execute(
        f"SELECT count(*) FROM ({union}) WHERE seq > (SELECT seq FROM clock)"
    ).fetchone()
    if late:
        found.append(f"{late} rows are newer than the clock")
    return found


def _values(connection: sqlite3.Connection) -> list[str]:
    """Read every value, and name the first row of each table that cannot be used."""
    found = []
    for table in ("branches", *NUMBERED, "applied_blocks", "compressions"):
        key: object = "?"
        try:
            for row in _rows(connection, table):
                key = next(iter(row.values()))
                if table in NUMBERED:
                    check_values(table, row)
        except (*READ_ERRORS, InvalidUpdate, ValueError, TypeError, RecursionError) as error:
            if is_of_the_system(error):
                raise
            found.append(f"{table} has a row that cannot be used, {key!r:.40} or after it: {error}")
    return found


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    for values in cursor:
        yield dict(zip(names, values, strict=True))


def check_values(table: str, row: Mapping[str, Any]) -> None:
    """Raise unless numbers are in order, and columns of JSON hold the form that is read from them.

    Raises:
        InvalidUpdate, ValueError, TypeError, RecursionError: If they do not.
    """
    if type(row["seq"]) is not int or row["seq"] < 1:
        raise InvalidUpdate(table, "a row has no number of its own")
    for name, kind in JSON_COLUMNS.get(table, {}).items():
        value = json.loads(row[name])
        is_good = isinstance(value, kind)
        if isinstance(value, list):
            is_good = is_good and all(isinstance(item, str) for item in value)
        if not is_good:
            raise InvalidUpdate(table, f"{name} of a row has another form than it must have")
    if row.get("is_deleted", 0) not in (0, 1):
        raise InvalidUpdate(table, "is_deleted of a row is neither 0 nor 1")
