"""The tables of a memory file, and the migration of older files.

Every row of a tier has a sequence number from the one clock, and stands on one branch. Rows are
only ever added: a new value, a tombstone, a repetition or a digest is a row of its own, so the
view of a branch at a sequence number can be read again exactly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from taskweaver.memory.branched.errors import StoreCorrupt, StoreTooNew
from taskweaver.utils.retrieval import VECTOR_TABLE, word_table

APPLICATION_ID = 0x5457_4D42  # "TWMB"
TIERS = (
    "core_kv",
    "events",
    "archival",
    "exclusions",
    "digests",
    "rounds",
    "posts",
    "round_ends",
    "summaries",
)

_TABLES = """
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
) STRICT;
INSERT INTO clock VALUES (1, 0);

CREATE TABLE branches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    node_uid TEXT,
    parent_id INTEGER REFERENCES branches (id),
    fork_seq INTEGER NOT NULL,
    live INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'sealed', 'pruned')),
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX branches_node_uid ON branches (node_uid) WHERE node_uid IS NOT NULL;
CREATE INDEX branches_parent ON branches (parent_id);

CREATE TABLE core_kv (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    key TEXT NOT NULL,
    value TEXT,
    importance INTEGER NOT NULL CHECK (importance BETWEEN 1 AND 5),
    expires_at REAL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX core_kv_branch ON core_kv (branch_id, key, seq);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    tags TEXT NOT NULL,
    data TEXT NOT NULL,
    repeats INTEGER,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX events_branch ON events (branch_id, seq);

CREATE TABLE exclusions (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    event_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX exclusions_branch ON exclusions (branch_id, seq);

CREATE TABLE digests (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    subject TEXT NOT NULL,
    up_to_seq INTEGER NOT NULL,
    count INTEGER NOT NULL,
    kinds TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX digests_branch ON digests (branch_id, subject, seq);

CREATE TABLE archival (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    record INTEGER NOT NULL,
    text TEXT NOT NULL,
    text_hash INTEGER NOT NULL,
    tags TEXT NOT NULL,
    meta TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX archival_branch ON archival (branch_id, seq);
CREATE INDEX archival_record ON archival (record, branch_id, seq);
CREATE INDEX archival_same ON archival (branch_id, text_hash);

CREATE TABLE rounds (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    id TEXT NOT NULL,
    user_query TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX rounds_branch ON rounds (branch_id, seq);

CREATE TABLE posts (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    round_seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX posts_branch ON posts (branch_id, seq);

CREATE TABLE round_ends (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    round_seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX round_ends_branch ON round_ends (branch_id, seq);

CREATE TABLE injections (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    task_hint TEXT,
    chars INTEGER NOT NULL,
    shown TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX injections_branch ON injections (branch_id, seq);

CREATE TABLE applied_blocks (
    id TEXT PRIMARY KEY,
    results TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE compressions (
    id TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""

_SUMMARIES = """
CREATE TABLE summaries (
    seq INTEGER PRIMARY KEY,
    branch_id INTEGER NOT NULL REFERENCES branches (id),
    role TEXT NOT NULL,
    up_to_seq INTEGER NOT NULL,
    count INTEGER NOT NULL,
    text TEXT NOT NULL,
    created_at REAL NOT NULL
) STRICT;
CREATE INDEX summaries_branch ON summaries (branch_id, role, seq);
"""

_ARCHIVAL_COLUMNS = """
ALTER TABLE archival ADD COLUMN is_deleted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE archival ADD COLUMN place TEXT AS ('b' || branch_id) VIRTUAL;
DROP TABLE IF EXISTS archival_fts;
"""
"""Mark of a deleted record, and the word for its branch that the index holds.

An index of the former form is dropped; `add_search` makes the new one.
"""

_WITHOUT_TRIGGERS = """
DROP TRIGGER IF EXISTS archival_added;
DROP TRIGGER IF EXISTS archival_removed;
"""
"""The index without triggers: a file that distrusts its schema may not have them run."""

_WITH_RECORDS = ""
"""No change of a table: posts may hold records of replies now, which earlier versions refuse."""

_INDEX = f"""
DROP TABLE IF EXISTS archival_fts;
{VECTOR_TABLE};
"""
"""The former index is dropped. `add_search` makes the new ones, and searches fill them."""

RECORDS, EVENTS = "archival_fts", "event_words"
"""The tables of words."""

_VALIDITY = """
ALTER TABLE archival ADD COLUMN valid_from REAL;
ALTER TABLE archival ADD COLUMN valid_to REAL;
ALTER TABLE archival ADD COLUMN replaced_by INTEGER;
CREATE INDEX archival_closed ON archival (branch_id, seq) WHERE valid_to IS NOT NULL;
"""
"""Time of a record. A closed version counts as deleted, so that earlier versions hide it, too."""

_SEARCHES = {
    1: """
CREATE VIRTUAL TABLE archival_fts USING fts5 (
    text, tags, content='archival', content_rowid='seq', tokenize="unicode61 tokenchars '_'"
);
""",
    4: """
CREATE VIRTUAL TABLE archival_fts USING fts5 (
    text, tags, place, content='archival', content_rowid='seq', tokenize="unicode61 tokenchars '_'"
);
""",
    6: f"{word_table(RECORDS)};{word_table(EVENTS)};",
}
"""The full-text tables from a version on."""

_FORMER_TRIGGERS = """
CREATE TRIGGER archival_added AFTER INSERT ON archival BEGIN
    INSERT INTO archival_fts (rowid, text, tags) VALUES (new.seq, new.text, new.tags);
END;
CREATE TRIGGER archival_removed AFTER DELETE ON archival BEGIN
    INSERT INTO archival_fts (archival_fts, rowid, text, tags)
    VALUES ('delete', old.seq, old.text, old.tags);
END;
"""


def _statements(script: str) -> list[str]:
    """Split a script of this package. Unlike `executescript` this leaves the transaction open."""
    statements, rest = [], ""
    for part in script.split(";"):
        rest += part + ";"
        if sqlite3.complete_statement(rest):
            statements.append(rest.strip())
            rest = ""
    return [statement for statement in statements if statement != ";"]


_MIGRATIONS = (
    _TABLES,
    _SUMMARIES,
    _WITHOUT_TRIGGERS,
    _ARCHIVAL_COLUMNS,
    _WITH_RECORDS,
    _INDEX,
    _VALIDITY,
)
"""Scripts from version n to version n + 1; a new one is added at the end."""

VERSION = len(_MIGRATIONS)


def is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a file has today's tables.

    Raises:
        StoreTooNew: If a newer version wrote it.
        StoreCorrupt: If it is another application's.
    """
    version, application = _marks(connection)
    if application == APPLICATION_ID:
        if version > VERSION:
            raise StoreTooNew(
                f"{path} was written by a newer version (format {version}, known up to"
                f" {VERSION}). Update the program."
            )
        return version == VERSION
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not application and {"branches", "core_kv", "events", "archival"} <= tables:
        raise StoreCorrupt(
            f"{path} is a memory of the original search, which is not opened. Read it with"
            " `sqlite3`, or choose another file."
        )
    if application or tables:
        raise StoreCorrupt(f"{path} is a database of another application. Choose another file.")
    return False


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a file to today's tables, inside the transaction that is open.

    Raises:
        StoreTooNew, StoreCorrupt: As `is_current`.
    """
    if is_current(connection, path):  # another process was first
        return
    _run(connection, _MIGRATIONS[version_of(connection) or 0 :])
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


_BRANCH_UNTIL = (
    "created_at <= ?1 AND branch_id IN (WITH RECURSIVE above(id) AS (SELECT ?2 UNION ALL SELECT"
    " parent_id FROM branches JOIN above USING (id)) SELECT id FROM above)"
)
"""Imported rows stand after rows that are younger: those of other branches say nothing."""
_NEWEST, _OLDER = (
    f"SELECT coalesce((SELECT {wanted} FROM ("
    + " UNION ALL ".join(
        f"SELECT * FROM (SELECT seq, created_at FROM {table} WHERE {condition}"
        " ORDER BY seq DESC LIMIT 1)"
        for table in (*TIERS, "injections")
        if table != "exclusions"
    )
    + ") ORDER BY seq DESC LIMIT 1), 0)"
    for wanted, condition in (("created_at", "seq <= ?1"), ("seq", _BRANCH_UNTIL))
)


def time_of(connection: sqlite3.Connection, row: int) -> float:
    """Return the time of the newest row up to a row, of whichever table; 0 for none."""
    return float(connection.execute(_NEWEST, (row,)).fetchone()[0])


def row_at(connection: sqlite3.Connection, time: float, branch: int | None) -> int:
    """Return the newest row up to a time on a branch and its ancestors; 0 for none."""
    return int(connection.execute(_OLDER, (time, branch)).fetchone()[0])


def add_search(connection: sqlite3.Connection) -> bool:
    """Make the empty tables of words if this SQLite has FTS5, and return whether they are there."""
    try:
        if not has_search(connection, "vectors"):
            connection.execute(VECTOR_TABLE)
        for name in (RECORDS, EVENTS):
            if not has_search(connection, name):
                connection.execute(word_table(name))
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        return False
    return True


def clear_search(connection: sqlite3.Connection) -> None:
    """Empty the index; the next searches fill it anew."""
    connection.execute("DELETE FROM vectors")
    for name in (RECORDS, EVENTS):
        if has_search(connection, name):
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('delete-all')")


def build(connection: sqlite3.Connection, version: int) -> None:
    """Make the tables of a version in an empty database, without the full-text index."""
    _run(connection, _MIGRATIONS[:version])


def _run(connection: sqlite3.Connection, scripts: Sequence[str]) -> None:
    for script in scripts:
        for statement in _statements(script):
            connection.execute(statement)


def search_index(version: int = VERSION) -> dict[tuple[str, str], str]:
    """Return the full-text tables as the schema of a version has them: the SQL by kind and name."""
    return _as_stored(_SEARCHES[max(first for first in _SEARCHES if first <= version)])


def former_triggers() -> dict[tuple[str, str], str]:
    """Return the triggers that a file with an index had up to version 2, by kind and name."""
    return _as_stored(_FORMER_TRIGGERS)


def _as_stored(script: str) -> dict[tuple[str, str], str]:
    found = {}
    for statement in _statements(script):
        words = statement.split()
        kind, name = ("table", words[3]) if words[1] == "VIRTUAL" else ("trigger", words[2])
        found[kind, name] = statement.removesuffix(";")
    return found


def version_of(connection: sqlite3.Connection) -> int | None:
    """Return the version of a file that this program wrote."""
    version, application = _marks(connection)
    return version if application == APPLICATION_ID else None


def has_search(connection: sqlite3.Connection, name: str = RECORDS) -> bool:
    """Return whether the file has a table of words."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return int(version), int(application)
