"""Erasure: a record, an event, a core key or a text leaves a memory for good.

The files beside the memory are cleaned first, then the rows in one transaction, then the free
pages and the write-ahead log, and then the files again, for lines that were added meanwhile. A
record, an event and a key are known by their rows, so those stay until the files are clean. An
erasure that was interrupted leaves a sound memory, and the same call finishes it.

A row that is nothing but an erased text goes; of a row that holds it the rest stays, with a mark in
its place. Digests that cover an erased event, summaries that cover a changed round and texts that a
model shortened may state the same in other words: all three are removed, and made again when they
are needed.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from taskweaver.memory.branched.erased_texts import ERASED, ErasedFiles, Needles, Untouched, is_mark
from taskweaver.memory.branched.errors import BranchedMemoryError, InvalidUpdate
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.storage.schema import clear_search
from taskweaver.memory.branched.tiers.archival import text_hash
from taskweaver.memory.branched.tiers.branches import BranchView
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.tiers.core import DIGEST_KEY, RESERVED
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import FOREVER
from taskweaver.memory.branched.values import checked_text, dump, name, paths, whole

_WAIT_FOR_WRITERS_MS, _WAIT_FOR_READERS_MS = 30_000, 1000
_LEAST_CHARS = 2


@dataclass(frozen=True, slots=True)
class Erasure:
    """Outcome of an erasure.

    Attributes:
        rows: Number of rows that were changed or removed, by table.
        files: Files beside the memory that were changed.
        untouched: Files that may still hold the text, with the reason.
        is_dry: Whether the text was only looked for.
    """

    rows: dict[str, int]
    files: tuple[str, ...]
    untouched: tuple[Untouched, ...]
    is_dry: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether no file is known to hold the text any more."""
        return not self.untouched


class _Rehearsal(Exception):
    """Ends the transaction of a dry run."""

    def __init__(self, rows: dict[str, int]) -> None:
        super().__init__()
        self.rows = rows


class Erasures:
    """Erases rows and texts of a memory, on all branches."""

    def __init__(self, tiers: Tiers, logs: Path) -> None:
        self._tiers = tiers
        self._database = tiers.database
        self._logs = logs

    def erase(
        self, target: Target, folders: Sequence[Path | str] = (), *, is_dry: bool = False
    ) -> Erasure:
        """Erase a target that `checked_target` made (see `BranchedMemory.erase`).

        Raises:
            InvalidUpdate: If the folders are malformed.
            StoreBusy, StoreUnwritable: If the file cannot be written.
        """
        self._database.require_own()
        config = self._tiers.config
        files = ErasedFiles(
            self._database.path,
            self._logs,
            paths("folders", folders),
            names=(config.final_memory_filename_md, config.final_memory_filename_json),
            is_dry=is_dry,
        )
        self._tiers.log.flush()
        with self._database.snapshot() as connection:
            needles = needles_of(connection, target)
        files.erase(needles)
        rows = self._rows(target, is_dry=is_dry)
        if not is_dry:
            self._tiers.log.flush()
            problem = self._compact()
            if problem:
                files.untouched[str(self._database.path)] = problem
            self._tiers.log.flush()  # so that no later line is taken for one that waited
            files.erase(needles)
        untouched = tuple(Untouched(*pair) for pair in sorted(files.untouched.items()))
        return Erasure(rows, tuple(sorted(files.changed)), untouched, is_dry)

    def _rows(self, target: Target, *, is_dry: bool) -> dict[str, int]:
        def act(writer: Writer) -> dict[str, int]:
            rows = dict(erase_rows(writer.connection, self._tiers, target))
            writer.known.forget()
            if is_dry:
                raise _Rehearsal(rows)
            return rows

        usual = self._database.alone(lambda connection: _overwrite_freed(connection, 1))
        try:
            return self._database.write(act)
        except _Rehearsal as rehearsal:
            return rehearsal.rows
        finally:
            self._tiers.branches.forget()
            self._database.alone(lambda connection: _overwrite_freed(connection, usual))

    def _compact(self) -> str:
        """Remove the remains in free pages and the log, and return the obstacle, if any."""

        def act(connection: sqlite3.Connection) -> bool:
            with closing(connection.execute("PRAGMA busy_timeout")) as cursor:
                (usual,) = cursor.fetchone()
            try:
                connection.execute(f"PRAGMA busy_timeout = {_WAIT_FOR_WRITERS_MS}")
                connection.execute("VACUUM")
                connection.execute(f"PRAGMA busy_timeout = {_WAIT_FOR_READERS_MS}")
                row = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not row[0]
            finally:
                connection.execute(f"PRAGMA busy_timeout = {usual}")

        try:
            is_done = self._database.alone(act)
        except BranchedMemoryError as error:
            return f"its rows are clean, its free pages may not be: {error}"
        if is_done:
            return ""
        return "another process reads it, and its pages before the erasure; erase again later"


def _overwrite_freed(connection: sqlite3.Connection, mode: int) -> int:
    """Set whether freed space is overwritten with zeros, and return the mode of before."""
    (usual,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute(f"PRAGMA secure_delete = {int(mode)}").fetchall()
    return int(usual)


def checked_target(
    *, record_id: str | int | None, event_id: str | int | None, key: str | None, text: str | None
) -> Target:
    """Check the target of an erasure.

    Raises:
        InvalidUpdate: If not exactly one thing is given, or it is malformed.
    """
    if [record_id, event_id, key, text].count(None) != 3:
        raise InvalidUpdate("erase", "needs one of a record, an event, a key and a text")
    if text is not None:
        checked = checked_text("text", text)
        if len(checked.strip()) < _LEAST_CHARS or checked in ERASED:
            raise InvalidUpdate("text", "must have two characters, and be no part of the mark")
        return Target(text=checked)
    if key is not None:
        return Target(key=name("key", key))
    if record_id is not None:
        return Target(record=_number("record_id", record_id))
    return Target(event=_number("event_id", event_id))


def _number(field: str, value: object) -> int:
    number = whole(field, value)
    if number >= FOREVER:
        raise InvalidUpdate(field, "is no number of a row")
    return number


_COLUMNS: dict[str, dict[str, Literal["text", "name", "json"]]] = {
    "events": {"text": "text", "kind": "name", "tags": "json", "data": "json"},
    "archival": {"text": "text", "tags": "json", "meta": "json"},
    "digests": {"text": "text", "kinds": "json"},
    "rounds": {"user_query": "text"},
    "injections": {"task_hint": "text", "shown": "json"},
    "compressions": {"text": "text"},
    "summaries": {"text": "text"},
    "branches": {"name": "name", "node_uid": "name"},
    "posts": {"body": "json"},
    "applied_blocks": {"results": "json"},
}
"""Columns that may hold a text, with the form of their values, by table."""
_KEPT = {"posts": frozenset({"id", "type", "send_from", "send_to"})}
"""Fields of JSON that no text of a person stands in, by table."""
_KEYS = {"branches": "id", "applied_blocks": "id", "compressions": "id"}
_SNAPSHOT = "Core memory snapshot\n"
_EVICTED_CORE = "Core evicted: "
_EVICTED_EVENT = "[Evicted Recall Event]\nKind: "


@dataclass(frozen=True, slots=True)
class Target:
    """Target of an erasure: the id of a record, the number of an event, a core key, or a text."""

    record: int | None = None
    event: int | None = None
    key: str | None = None
    text: str | None = None


def needles_of(connection: sqlite3.Connection, target: Target) -> Needles:
    """Return the texts that a target stands for in the present state of the file."""
    if target.text is not None:
        return Needles([target.text], is_exact=True)
    if target.key is not None:
        rows = connection.execute("SELECT value FROM core_kv WHERE key = ?", (target.key,))
        return Needles([], keyed={target.key: {value for (value,) in rows if value}})
    if target.record is not None:
        query, number = "SELECT text, meta FROM archival WHERE record = :n", target.record
    else:
        query = f"SELECT text, data FROM events WHERE {_OCCURRENCES}"
        number = target.event or 0
    texts: set[str] = set()
    keyed: dict[str, set[str]] = {}
    for text, extra in connection.execute(query, {"n": number}):
        texts |= {text, *_prose(json.loads(extra))}
        header, _, body = text.partition("\n")
        if header.startswith(_EVICTED_CORE) and body:
            keyed.setdefault(header.removeprefix(_EVICTED_CORE), set()).add(body)
        elif text.startswith(_EVICTED_EVENT):
            texts.add(body.partition("\n\n")[2])
    return Needles(texts, keyed=keyed)


_OCCURRENCES = """coalesce(repeats, seq) = (
    SELECT coalesce(repeats, seq) FROM events WHERE seq = :n
)"""


def _prose(data: Any) -> Iterator[str]:
    """Yield the texts of several words in plain data."""
    if isinstance(data, str):
        if " " in data.strip():
            yield data
    elif isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _prose(item)


def erase_rows(connection: sqlite3.Connection, tiers: Tiers, target: Target) -> Counter[str]:
    """Remove a target from all rows, and return how many rows changed, by table."""
    eraser = _Eraser(connection, tiers, needles_of(connection, target))
    eraser.remove(target)
    eraser.clean()
    eraser.remake()
    # Removed words stay in an index until it is emptied. The option `secure-delete` of FTS5 is not
    # used: older versions of SQLite cannot open a file that has it.
    clear_search(connection)
    if eraser.counts:
        # Every process that has the file open sees by the schema's number that it read old rows.
        connection.execute("CREATE TABLE erased (one INTEGER)")
        connection.execute("DROP TABLE erased")
    return eraser.counts


class _Eraser:
    """One erasure in an open transaction."""

    def __init__(self, connection: sqlite3.Connection, tiers: Tiers, needles: Needles) -> None:
        self._connection = connection
        self._tiers = tiers
        self._needles = needles
        self._events: dict[int, int] = {}
        self._rounds: dict[int, int] = {}
        self._snapshots: set[int] = set()
        self.counts: Counter[str] = Counter()

    def remove(self, target: Target) -> None:
        """Remove the rows of the target itself."""
        if target.record is not None:
            self._delete("archival", "record = ?", target.record)
        elif target.event is not None:
            self._delete_event(target.event)
        elif target.key is not None:
            self._delete("core_kv", "key = ?", target.key)

    def _delete(self, table: str, where: str, *values: object) -> None:
        cursor = self._connection.execute(f"DELETE FROM {table} WHERE {where}", values)
        if cursor.rowcount:
            self.counts[table] += cursor.rowcount

    def _delete_event(self, number: int) -> None:
        """Remove an event with the repetitions and the rows that hide it."""
        rows = self._connection.execute(
            "SELECT e.seq, e.branch_id, o.seq"
            f" FROM (SELECT * FROM events WHERE {_OCCURRENCES}) e"
            " JOIN events o ON o.seq = coalesce(e.repeats, e.seq) ORDER BY e.seq",
            {"n": number},
        ).fetchall()
        for seq, branch, origin in reversed(rows):
            self._events[seq] = branch
            self._delete("exclusions", "event_seq = ?", origin)
            self._delete("events", "seq = ?", seq)

    def clean(self) -> None:
        """Remove the texts from every row."""
        if not self._needles:
            return
        self._clean_core()
        for table in _COLUMNS:
            for key, old, new in self._changes(table):
                self._replace(table, key, old, new)

    def _changes(self, table: str) -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
        """Return the rows that hold a text: key, values, and the new values of columns."""
        found = []
        columns = _COLUMNS[table]
        query = f"SELECT {_KEYS.get(table, 'seq')}, {', '.join(columns)} FROM {table}"
        for key, *values in self._connection.execute(query):
            old = dict(zip(columns, values, strict=True))
            cleaned = {name: self._cleaned(table, name, value) for name, value in old.items()}
            new = {name: value for name, value in cleaned.items() if value != old[name]}
            if new:
                found.append((key, old, new))
        return found

    def _cleaned(self, table: str, name: str, value: Any) -> Any:
        form = _COLUMNS[table][name]
        if not isinstance(value, str):
            return value
        if form == "name":
            return self._needles.clean_name(value)
        if form == "text":
            return self._needles.clean(value)
        try:
            data = json.loads(value)
        except ValueError:
            return self._needles.clean(value)
        cleaned = self._needles.clean_data(data, _KEPT.get(table, frozenset()))
        return value if cleaned == data else dump(cleaned)

    def _replace(self, table: str, key: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Write the new values of a row, or remove the row."""
        if table in {"compressions", "digests", "summaries"}:
            self._delete(table, f"{_KEYS.get(table, 'seq')} = ?", key)
            return
        if table == "events":
            if key in self._events:  # gone with the event that it repeats
                return
            self._events[key] = self._branch_of(table, key)
            if self._needles.is_whole(old["text"]):
                self._delete_event(key)
                return
        elif table == "archival":
            new = self._record(key, old, new)
        elif table == "rounds":
            self._rounds[key] = self._branch_of(table, key)
        elif table == "posts":
            row = self._connection.execute(
                "SELECT round_seq, branch_id FROM posts WHERE seq = ?", (key,)
            ).fetchone()
            self._rounds[row[0]] = row[1]
        elif table == "branches":
            new = {name: self._unique(str(value), key) for name, value in new.items()}
        self._update(table, key, new)

    def _record(self, seq: int, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """Return the new values of a record, which is deleted if nothing else is left."""
        if old["text"].startswith(_SNAPSHOT):
            row = self._connection.execute("SELECT record FROM archival WHERE seq = ?", (seq,))
            self._snapshots.add(row.fetchone()[0])
        if "text" in new and self._needles.is_whole(old["text"]):
            new = {"text": "", "tags": "[]", "meta": "{}", "is_deleted": 1, "valid_to": None}
        return {**new, "text_hash": text_hash(new.get("text", old["text"]))}

    def _update(self, table: str, key: Any, new: dict[str, Any]) -> None:
        marks = ", ".join(f"{name} = ?" for name in new)
        self._connection.execute(
            f"UPDATE {table} SET {marks} WHERE {_KEYS.get(table, 'seq')} = ?", (*new.values(), key)
        )
        self.counts[table] += 1

    def _branch_of(self, table: str, seq: int) -> int:
        query = f"SELECT branch_id FROM {table} WHERE seq = ?"
        return int(self._connection.execute(query, (seq,)).fetchone()[0])

    def _unique(self, name: str, number: int) -> str:
        """Return a unique name of a branch."""
        query = "SELECT 1 FROM branches WHERE name = ? AND id != ?"
        is_taken = self._connection.execute(query, (name, number)).fetchone() is not None
        return f"{name[:180]}-{number}" if is_taken else name

    def _clean_core(self) -> None:
        """Remove the texts from core rows. A value that is nothing else becomes a deletion."""
        changed = []
        for seq, key, value in self._connection.execute("SELECT seq, key, value FROM core_kv"):
            name = key if key in RESERVED else self._needles.clean_name(key)
            new = None if value is None else self._needles.clean_data(value, field=key)
            if new is not None and new != value and is_mark(new):
                new = None
            if (name, new) != (key, value):
                changed.append((seq, {"key": name, "value": new}))
        for seq, values in changed:
            self._update("core_kv", seq, values)

    def remake(self) -> None:
        """Make or remove the rows that derive from erased rows."""
        if self._events:
            self._remove_derived("digests", self._events)
        for record in self._snapshots:
            self._remake_core_digest(record)
        if self._rounds:
            self._remove_derived("summaries", self._rounds)
        if self.counts:
            self._delete("compressions", "TRUE")

    def _remake_core_digest(self, record: int) -> None:
        """Make the key that stands for a snapshot of core memory from the rest of that snapshot."""
        reference = f"\n(ref: {record})"
        row = self._connection.execute(
            "SELECT text FROM archival WHERE record = ? ORDER BY seq DESC LIMIT 1", (record,)
        ).fetchone()
        rows = self._connection.execute(
            "SELECT seq, value FROM core_kv WHERE key = ? AND value LIKE ?",
            (DIGEST_KEY, f"%{reference}"),
        ).fetchall()
        for seq, value in rows:
            room = max(0, len(value) - len(reference))
            summary = Compressor.cut(row[0].removeprefix(_SNAPSHOT), room)
            self._update("core_kv", seq, {"value": summary + reference})

    def _remove_derived(self, table: str, changed: Mapping[int, int]) -> None:
        """Remove the rows of a table that sum up changed rows, given with their branches."""
        branches = {branch.number: branch for branch in self._tiers.branches.all(self._connection)}
        rows = self._connection.execute(f"SELECT seq, branch_id, up_to_seq FROM {table}").fetchall()
        for seq, number, up_to in rows:
            view = BranchView(self._connection, branches[number], up_to)
            ends = dict(self._tiers.branches.path(view))
            if any(row <= ends.get(branch, -1) for row, branch in changed.items()):
                self._delete(table, "seq = ?", seq)
