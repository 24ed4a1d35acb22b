"""The event log of a session: numbered events in a file, which readers resume by number.

Events are gathered in memory, and written when they are read, when a round ends, or when many have
come. So an event that was read keeps its number, also when the program is killed. Other processes
read what is in the file with `read_events`, once the owner of the log has called `flush`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from taskweaver.logging.log import TelemetryLogger
from taskweaver.module.event_emitter import EventScope, RoundEventType, TaskWeaverEvent
from taskweaver.session.errors import SessionClosed, SessionError, check_events
from taskweaver.utils.redact import redact_known, redact_known_in
from taskweaver.utils.sqlite_files import READ_ERRORS, UnsafeFile, open_private, remove_database

EVENTS_FILE = "events.sqlite"
"""Name of the file in a session's folder."""

_MOST_KEPT = 20_000
_MOST_CHARS = 32 << 20
_MOST_WAITING = 256
_SKIPPED = 100_000
"""Numbers left out after a sudden end: the last ones may have been seen and not be on disk."""

_FORGOTTEN = 2_000
"""Number of the oldest events that are forgotten at a time."""
_CUT = "The program ended before the round did."


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else str(value)


_BOUNDS = (
    "SELECT coalesce((SELECT min(number) FROM events), 0),"
    " coalesce((SELECT max(number) FROM events), 0)"
)
_OF_BRANCH = """
SELECT number, kind, data FROM events
WHERE number > ? AND ? IN ('', json_extract(data, '$.branch')) ORDER BY number LIMIT ?
"""
_ENCODER = json.JSONEncoder(default=_plain)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
  number INTEGER PRIMARY KEY, round TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS use (is_open INTEGER NOT NULL) STRICT;
"""


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event of a session.

    Attributes:
        number: Its number; later events of the session have larger ones.
        kind: Its type, such as ``post_message_update``.
        data: Its fields as JSON: ``type``, ``branch``, ``round_id``, ``post_id``, ``msg``,
            ``extra`` and ``at``, the time.
    """

    number: int
    kind: str
    data: str

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields, read."""
        found: dict[str, Any] = json.loads(self.data)
        return found


class EventLog:
    """Numbered events of a session, the newest ones kept. Close it. Thread-safe.

    The file is opened with the first event or reader.
    """

    def __init__(self, folder: Path, logger: TelemetryLogger) -> None:
        """Prepare the log of the session in a folder."""
        self._path = folder / EVENTS_FILE
        self._logger = logger
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._first, self._last, self._count, self._chars = 1, 0, 0, 0
        self._waiting: list[tuple[int, str, str, str]] = []
        self._listeners: list[Callable[[], None]] = []
        self._is_closed = False
        self._problem = ""

    def _database(self) -> sqlite3.Connection:
        """Return the open file. A damaged one is replaced by an empty one.

        Raises:
            SessionError: If it cannot be opened, now or before.
        """
        if self._problem:
            raise SessionError(self._problem)
        if self._file is None:
            try:
                self._file = self._replaced_if_damaged()
            except (*READ_ERRORS, OSError) as error:
                self._problem = f"No events are kept: {self._path} cannot be opened: {error}."
                self._logger.warning(self._problem)
                raise SessionError(self._problem) from error
            self._end_cut_rounds(self._file)
        return self._file

    def _replaced_if_damaged(self) -> sqlite3.Connection:
        try:
            return self._opened()
        except sqlite3.OperationalError:  # no room, or no right: it may be sound
            raise
        except (*READ_ERRORS, UnsafeFile) as error:
            self._logger.warning(f"{self._path} is replaced, it cannot be read: {error}")
            remove_database(self._path)
            database = self._opened()
            self._last = int(time.time() * 1000)  # beyond all that were given before
            self._first = self._last + 1
            return database

    def _opened(self) -> sqlite3.Connection:
        database = open_private(self._path, _SCHEMA)
        try:
            first, last, self._count, self._chars = database.execute(
                "SELECT min(number), max(number), count(*), total(length(data)) FROM events"
            ).fetchone()
            (was_open,) = database.execute("SELECT count(*) FROM use").fetchone()
            self._last = (last or 0) + (_SKIPPED if was_open else 0)
            self._first = first or self._last + 1
            with database:
                database.execute("DELETE FROM use")
                database.execute("INSERT INTO use VALUES (1)")
            database.isolation_level = None  # from here on each statement is a transaction
        except BaseException:
            database.close()
            raise
        return database

    def _end_cut_rounds(self, database: sqlite3.Connection) -> None:
        """Add the end of each round that a sudden end of the program cut."""
        started, ended = RoundEventType.round_start.value, RoundEventType.round_end.value
        rows = database.execute(
            "SELECT round, data FROM events WHERE kind = ?"
            " AND round NOT IN (SELECT round FROM events WHERE kind = ?)",
            (started, ended),
        ).fetchall()
        for round_id, data in rows:
            branch = str(json.loads(data)["branch"])
            for kind, text in ((RoundEventType.round_error, _CUT), (RoundEventType.round_end, "")):
                self._add(TaskWeaverEvent(EventScope.round, kind, round_id, None, text, {}, branch))

    def handle(self, event: TaskWeaverEvent) -> None:
        """Add an event of a round, as a listener of the session. Known secrets are masked."""
        if event.scope is EventScope.session or self._problem:
            return
        with self._lock:
            if self._is_closed:
                return
            with suppress(SessionError):  # it was logged, and readers are told
                self._database()
            self._add(event)
            if event.t is RoundEventType.round_end or len(self._waiting) >= _MOST_WAITING:
                self._write()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def _add(self, event: TaskWeaverEvent) -> None:
        fields = {
            "type": event.t.value,
            "branch": redact_known(event.branch),
            "round_id": event.round_id,
            "post_id": event.post_id,
            "msg": redact_known(event.msg),
            "extra": redact_known_in(event.extra),
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        data = _ENCODER.encode(fields)
        self._last += 1
        self._waiting.append((self._last, event.round_id or "", event.t.value, data))

    def _write(self) -> None:
        """Write the waiting events. After a failure, all events up to now are given up."""
        rows, self._waiting = self._waiting, []
        if not rows or self._problem:
            return
        database = self._database()
        # One statement: each one lets the interpreter's lock go, and may wait to get it back.
        places = ", ".join(["(?, ?, ?, ?)"] * len(rows))
        try:
            database.execute(
                f"INSERT INTO events VALUES {places}", [value for row in rows for value in row]
            )
            self._count += len(rows)
            self._chars += sum(len(row[-1]) for row in rows)
            self._forget(database)
        except READ_ERRORS as error:
            self._logger.warning(f"{len(rows)} events are not kept in {self._path}: {error}")
            self._first = self._last + 1

    def _forget(self, database: sqlite3.Connection) -> None:
        """Forget the oldest events, beyond a number and a size."""
        while self._count > _MOST_KEPT or self._chars > _MOST_CHARS:
            rows = database.execute(
                "SELECT number, length(data) FROM events ORDER BY number LIMIT ?", (_FORGOTTEN,)
            ).fetchall()
            database.execute("DELETE FROM events WHERE number <= ?", (rows[-1][0],))
            self._count -= len(rows)
            self._chars -= sum(size for _, size in rows)
            self._first = rows[-1][0] + 1

    @property
    def last(self) -> int:
        """Number of the newest event, 0 before the first. Raises SessionError as `read`."""
        with self._lock:
            if not self._is_closed:
                self._database()
            return self._last

    def read(self, after: int, limit: int = 500) -> list[NumberedEvent]:
        """Return the events after one, the oldest first, at most `limit`.

        Raises:
            EventsGone: If some of them are no longer kept.
            EventsToCome: If there is no event of that number yet.
            SessionClosed: If the session was stopped.
            SessionError: If the log cannot be read.
        """
        with self._lock:
            written = self._written()
            check_events(after, self._first, self._last)
            if after >= self._last - len(written):  # a reader of what happens now
                return [
                    NumberedEvent(number, kind, data)
                    for number, _, kind, data in written
                    if number > after
                ][:limit]
            sql = "SELECT number, kind, data FROM events WHERE number > ? ORDER BY number LIMIT ?"
            return [NumberedEvent(*row) for row in self._query(sql, after, limit)]

    def _written(self) -> list[tuple[int, str, str, str]]:
        """Write the events that wait, and return them. Raises as `read`."""
        if self._is_closed:
            raise SessionClosed("The session was stopped.")
        self._database()
        written = self._waiting
        self._write()
        return written

    def flush(self) -> None:
        """Write the events that wait, for readers in other processes."""
        with self._lock:
            if not self._is_closed:
                self._write()

    def _query(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._database().execute(sql, values).fetchall()
        except READ_ERRORS as error:
            raise SessionError(f"{self._path} cannot be read: {error}.") from error

    def before(self, round_ids: Sequence[str]) -> int:
        """Return the number before the first event of some rounds: a reader sees them whole then.

        Rounds whose first event is no longer kept are left out; without any it is the newest event.

        Raises:
            SessionClosed, SessionError: As `read`.
        """
        with self._lock:
            self._written()
            marks = ", ".join("?" * len(round_ids))
            sql = f"SELECT min(number) FROM events WHERE kind = ? AND round IN ({marks})"
            ((first,),) = self._query(sql, RoundEventType.round_start.value, *round_ids)
            return self._last if first is None else int(first) - 1

    @property
    def has_readers(self) -> bool:
        """Whether a reader waits for events."""
        return bool(self._listeners)

    def listen(self, on_event: Callable[[], None]) -> None:
        """Call a function after each event and at the close, in the thread where it happens."""
        with self._lock:
            self._listeners.append(on_event)

    def unlisten(self, on_event: Callable[[], None]) -> None:
        """Call a function no longer."""
        with self._lock:
            self._listeners.remove(on_event)

    def close(self) -> None:
        """Write what waits, and close the file. Safe to call again."""
        with self._lock:
            if self._is_closed:
                return
            self._write()
            self._is_closed = True
            if self._file is not None:
                with suppress(sqlite3.Error):
                    self._file.execute("DELETE FROM use")
                self._file.close()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()


def read_events(
    folder: Path, branch: str, after: int, limit: int
) -> tuple[list[NumberedEvent], int]:
    """Read the events of a branch that another process has written, after one, oldest first.

    An empty branch is for all branches; 0 begins with the oldest event that is kept.

    Returns:
        The events, at most `limit`, and the number of the newest event of all branches.

    Raises:
        EventsGone, EventsToCome, SessionError: As `EventLog.read`.
    """
    path = folder / EVENTS_FILE
    if not (path.exists() and path.stat().st_size):
        return [], after
    try:
        with closing(open_private(path, _SCHEMA)) as database:  # its owner may be about to make it
            first, last = database.execute(_BOUNDS).fetchone()
            rows = database.execute(_OF_BRANCH, (after, branch, limit)).fetchall()
    except (*READ_ERRORS, OSError) as error:
        raise SessionError(f"{path} cannot be read: {error}.") from error
    check_events(after or first - 1, first, last)  # 0 begins with the oldest that is kept
    return [NumberedEvent(*row) for row in rows], last
