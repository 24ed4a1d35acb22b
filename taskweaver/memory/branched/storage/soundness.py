"""Checks of a memory file: SQLite's own, the schema, each row, and invariants between rows.

A damaged file can raise anything where it is read: SQLite names most damage, but a number in place
of a text, or a text that is no JSON, shows up in the code that uses the value. So an unexpected
error is taken for damage only if these checks find some; see `Database`.

A trigger, a view, a default or a check that another person put into a file would run with each
write. It is found when the file is opened, at the cost of one query.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate, StoreCorrupt, is_of_the_system
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.storage.schema import TIERS
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
    """Return the problems of a file, a line each. Empty when all is well.

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
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            for values in cursor:
                row = dict(zip(names, values, strict=True))
                key = next(iter(row.values()))
                if table in NUMBERED:
                    check_values(table, row)
        except (*READ_ERRORS, InvalidUpdate, ValueError, TypeError, RecursionError) as error:
            if is_of_the_system(error):
                raise
            found.append(f"{table} has a row that cannot be used, {key!r:.40} or after it: {error}")
    return found


def check_values(table: str, row: Mapping[str, Any]) -> None:
    """Raise unless numbers are in order, and columns of JSON hold the expected form.

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


_Key = tuple[str, str]
"""Kind and name of an object."""
_Object = tuple[str, str, str | None]
"""Kind, name and SQL of an object."""
_INTERNAL = {
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
}
_AUTOMATIC = re.compile(r"sqlite_autoindex_\w+_\d+")
_INDEX_PART = re.compile(r"(?:archival_fts|\w+_words)_(?:data|idx|docsize|config|content)")
# Made by SQLite itself, in a form that depends on its version; nothing in it can run.
_INDEX_PART_SQL = re.compile(
    r"CREATE TABLE '?(?:archival_fts|\w+_words)_\w+'?\([\w ,()]*\)(?: WITHOUT ROWID)?"
)
_WITHOUT_TRIGGERS = 3
"""Version from which on a file has no triggers."""
_MOST_NAMED = 5


def schema_problems(connection: sqlite3.Connection) -> list[str]:
    """Return the differences between a file's schema and the schema of its version, a line each.

    Raises:
        sqlite3.DatabaseError: If the schema cannot be read.
    """
    version = schema.version_of(connection) or 0
    found = _explicit(_objects(connection))
    wanted = _expected(version) if 1 <= version <= schema.VERSION else {}
    missing = [
        f"the {kind} {name} is missing" for kind, name in wanted if (kind, name) not in found
    ]
    return [*missing, *foreign_objects(connection)]


def foreign_objects(connection: sqlite3.Connection) -> list[str]:
    """Return the objects of a file's schema that the version does not have, a line each.

    Raises:
        sqlite3.DatabaseError: If the schema cannot be read.
    """
    version = schema.version_of(connection)
    if version is None or not 1 <= version <= schema.VERSION:
        return [f"the format {version} is unknown"]
    return list(_foreign(version, _objects(connection)))


@lru_cache(maxsize=8)
def _foreign(version: int, objects: tuple[_Object, ...]) -> tuple[str, ...]:
    """Compare objects with the schema of a version, which takes longer than reading a schema."""
    allowed = {**_expected(version), **schema.search_index(version)}
    if version < _WITHOUT_TRIGGERS:
        allowed |= schema.former_triggers()
    return tuple(
        f"the {kind} {name} was changed"
        if (kind, name) in allowed or _INDEX_PART.fullmatch(name)
        else f"the {kind} {name[:80]!r} is not one of this program"
        for (kind, name), sql in _explicit(objects).items()
        if allowed.get((kind, name)) != sql
        and not (kind == "table" and _INDEX_PART.fullmatch(name) and _INDEX_PART_SQL.fullmatch(sql))
    )


@cache
def _expected(version: int) -> dict[_Key, str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.build(connection, version)
        return _explicit(_objects(connection))


def _objects(connection: sqlite3.Connection) -> tuple[_Object, ...]:
    return tuple(connection.execute("SELECT type, name, sql FROM sqlite_master"))


def _explicit(objects: tuple[_Object, ...]) -> dict[_Key, str]:
    """Return the objects of a schema, without the objects of SQLite itself."""
    return {
        (kind, name): sql or "" for kind, name, sql in objects if not _is_of_sqlite(kind, name, sql)
    }


def _is_of_sqlite(kind: str, name: str, sql: str | None) -> bool:
    if kind == "index":
        return sql is None and _AUTOMATIC.fullmatch(name) is not None
    return kind == "table" and name in _INTERNAL and sql == _INTERNAL[name]


def require_own_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise if the schema of a file that this program wrote holds foreign objects.

    A table that is missing costs the rows in it, and is no danger; see `schema_problems`. A file
    of another origin passes: `schema.is_current` judges it.

    Raises:
        StoreCorrupt: If it holds other objects, or a branch that is older than its parent: one of
            a circle always is, and no path of such a branch would end.
    """
    version = schema.version_of(connection)
    if version is None or version > schema.VERSION:
        return
    odd = "SELECT id FROM branches WHERE parent_id >= id"
    problems = foreign_objects(connection) or [
        f"branch {number} is older than its parent" for (number,) in connection.execute(odd)
    ]
    if problems:
        more = f", and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
        named = ", ".join(problems[:_MOST_NAMED]) + more
        raise StoreCorrupt(f"{path} has a schema that this program did not make: {named}.")
