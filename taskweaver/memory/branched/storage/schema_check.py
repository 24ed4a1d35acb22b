"""Comparison of a file's schema with the one that its version has.

A trigger, a view, a default or a check that another person put into a file would run with each
write. It is found when the file is opened, at the cost of one query.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path

from taskweaver.memory.branched.errors import StoreCorrupt
from taskweaver.memory.branched.storage import schema

_Key = tuple[str, str]
"""Kind and name of an object."""
_Object = tuple[str, str, str | None]
"""Kind, name and SQL of an object."""
_INTERNAL = {
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
}
_AUTOMATIC = re.compile(r"sqlite_autoindex_\w+_\d+")
_INDEX_PART = re.compile(r"archival_fts_(?:data|idx|docsize|config|content)")
# Made by SQLite itself, in a form that depends on its version; nothing in it can run.
_INDEX_PART_SQL = re.compile(r"CREATE TABLE '?archival_fts_\w+'?\([\w ,()]*\)(?: WITHOUT ROWID)?")
_WITHOUT_TRIGGERS = 3
"""Version from which on a file has no triggers."""
_MOST_NAMED = 5


def schema_problems(connection: sqlite3.Connection) -> list[str]:
    """Return how a file's schema differs from that of its version, a line each.

    Raises:
        sqlite3.DatabaseError: If the schema cannot be read.
    """
    found = _explicit(_objects(connection))
    missing = [f"the {kind} {name} is missing" for kind, name in _required(connection, found)]
    return [*missing, *foreign_objects(connection)]


def _required(connection: sqlite3.Connection, found: Mapping[_Key, str]) -> Iterator[_Key]:
    """Yield the objects of this version that the file lacks."""
    version = schema.version_of(connection)
    if version is not None and 1 <= version <= schema.VERSION:
        yield from (key for key in _expected(version) if key not in found)


def foreign_objects(connection: sqlite3.Connection) -> list[str]:
    """Return the objects of a file's schema that its version does not have, a line each.

    Raises:
        sqlite3.DatabaseError: If the schema cannot be read.
    """
    version = schema.version_of(connection)
    if version is None or not 1 <= version <= schema.VERSION:
        return [f"the format {version} is unknown"]
    return list(_foreign(version, _objects(connection)))


@lru_cache(maxsize=8)
def _foreign(version: int, objects: tuple[_Object, ...]) -> tuple[str, ...]:
    """Compare a schema with that of its version, which takes longer than to read it."""
    allowed = {**_expected(version), **schema.search_index(version)}
    if version < _WITHOUT_TRIGGERS:
        allowed |= schema.former_triggers()
    return tuple(
        f"the {kind} {name} was changed"
        if (kind, name) in allowed or _INDEX_PART.fullmatch(name)
        else f"the {kind} {name[:80]!r} is not one of this program"
        for (kind, name), sql in _explicit(objects).items()
        if allowed.get((kind, name)) != sql and not _is_index_part(kind, name, sql)
    )


def _is_index_part(kind: str, name: str, sql: str) -> bool:
    is_named = kind == "table" and _INDEX_PART.fullmatch(name) is not None
    return is_named and _INDEX_PART_SQL.fullmatch(sql) is not None


@cache
def _expected(version: int) -> dict[_Key, str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.build(connection, version)
        return _explicit(_objects(connection))


def _objects(connection: sqlite3.Connection) -> tuple[_Object, ...]:
    return tuple(connection.execute("SELECT type, name, sql FROM sqlite_master"))


def _explicit(objects: tuple[_Object, ...]) -> dict[_Key, str]:
    """Return the objects of a schema, without those that SQLite itself makes."""
    return {
        (kind, name): sql or "" for kind, name, sql in objects if not _is_of_sqlite(kind, name, sql)
    }


def _is_of_sqlite(kind: str, name: str, sql: str | None) -> bool:
    if kind == "index":
        return sql is None and _AUTOMATIC.fullmatch(name) is not None
    return kind == "table" and name in _INTERNAL and sql == _INTERNAL[name]


def branches_in_circle(connection: sqlite3.Connection) -> list[int]:
    """Return the numbers of branches that descend from themselves, which no path ends at."""
    odd = "SELECT 1 FROM branches WHERE parent_id >= id LIMIT 1"
    if connection.execute(odd).fetchone() is None:
        return []
    parents = dict(connection.execute("SELECT id, parent_id FROM branches"))
    ended: set[int | None] = {None}
    circle = []
    for start in parents:
        line: list[int] = []
        place: int | None = start
        while place not in ended and place is not None and place not in line:
            line.append(place)
            place = parents.get(place)
        if place in ended:
            ended.update(line)
        else:
            circle.append(start)
    return circle


def require_own_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise if the schema of a file that this program wrote holds foreign objects.

    A table that is missing costs the rows in it, and is no danger; see `schema_problems`. A file
    of another origin passes: `schema.is_current` judges it.

    Raises:
        StoreCorrupt: If it holds other objects, or branches that descend from themselves.
    """
    version = schema.version_of(connection)
    if version is None or version > schema.VERSION:
        return
    problems = foreign_objects(connection)
    if not problems:
        circle = branches_in_circle(connection)
        problems = [f"branch {number} descends from itself" for number in circle]
    if problems:
        more = f", and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
        named = ", ".join(problems[:_MOST_NAMED]) + more
        raise StoreCorrupt(f"{path} has a schema that this program did not make: {named}.")
