"""The index of a user's sessions: titles, messages and changes, in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from taskweaver.server.errors import RequestRefused, ServerError
from taskweaver.session.errors import EventsGone, EventsToCome
from taskweaver.utils.sqlite_files import READ_ERRORS, insert_row, open_private

MessageState = Literal["queued", "running", "finished", "failed", "withdrawn", "stopped"]
OPEN_STATES = ("queued", "running")

_MOST_CHANGES = 10_000
_CUT = "The server ended before this message was answered."
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
  session TEXT PRIMARY KEY, title TEXT NOT NULL, created_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS messages (
  id TEXT PRIMARY KEY, session TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL,
  text TEXT NOT NULL, state TEXT NOT NULL, round_id TEXT NOT NULL, answer TEXT NOT NULL,
  tokens INTEGER NOT NULL, cost REAL, created_at TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS messages_of_sessions ON messages (session);
CREATE TABLE IF NOT EXISTS changes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, data TEXT NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class IndexedSession:
    """A session as the index has it; `title` is empty until the user gives it one."""

    session: str
    title: str
    created_at: str


@dataclass(frozen=True, slots=True)
class IndexedMessage:
    """A message of a user to a branch.

    Attributes:
        id: Its id.
        session: Id of the session.
        branch: Name of the branch.
        kind: ``ask`` for a question, ``code`` for a cell of the user's own.
        text: The question, or the code.
        state: Its state.
        round_id: Id of the round that answers it; empty before that.
        answer: The answer, or the reason why there is none.
        tokens: Tokens that its round consumed.
        cost: Cost of these; None if prices are unknown.
        created_at: Time at which it was accepted.
    """

    id: str
    session: str
    branch: str
    kind: str
    text: str
    state: str = "queued"
    round_id: str = ""
    answer: str = ""
    tokens: int = 0
    cost: float | None = None
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A change of the index: its number, its kind, and its fields as JSON."""

    number: int
    kind: str
    data: str


class AgentIndex:
    """An index. Close it; thread-safe. Each change is on disk when a method returns.

    The methods raise ServerError if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        """Open the index; make it, for its owner alone, if there is none.

        Messages that a sudden end of the server cut are marked.
        """
        self._path = path
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._database = open_private(path)
        try:
            with self._explained():
                self._database.executescript(_SCHEMA)
            for message in self.messages(states=OPEN_STATES):
                self.update(message.id, state="stopped", answer=_CUT)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the file; safe to call again."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (*READ_ERRORS, OSError) as error:
            if "full" in str(error):
                raise RequestRefused(507, "disk-full", "There is no room on the disk.") from error
            raise ServerError(f"The index {self._path} cannot be used: {error}.") from error

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Change the index in a transaction, then call the listeners."""
        with self._explained(), self._lock, self._database:
            yield self._database
        self.wake()

    def wake(self) -> None:
        """Call the functions that listen."""
        for listener in tuple(self._listeners):
            listener()

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._explained(), self._lock:
            return self._database.execute(sql, values).fetchall()

    def _note(self, database: sqlite3.Connection, kind: str, **data: object) -> None:
        row = database.execute(
            "INSERT INTO changes (kind, data) VALUES (?, ?)", (kind, json.dumps(data))
        )
        oldest = int(row.lastrowid or 0) - _MOST_CHANGES
        database.execute("DELETE FROM changes WHERE number <= ?", (oldest,))

    def sessions(self) -> list[IndexedSession]:
        """Return the sessions, the newest first."""
        sql = "SELECT session, title, created_at FROM sessions ORDER BY created_at DESC"
        return [IndexedSession(*row) for row in self._rows(sql)]

    def add_session(self, session: str, title: str) -> None:
        """Add a session."""
        with self._changing() as database:
            row = (session, title, _now())
            database.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?)", row)
            self._note(database, "session_created", session_id=session, title=title)

    def rename_session(self, session: str, title: str) -> None:
        """Give a session a title."""
        with self._changing() as database:
            database.execute(
                "INSERT INTO sessions VALUES (?, ?, ?)"
                " ON CONFLICT (session) DO UPDATE SET title = excluded.title",
                (session, title, _now()),
            )
            self._note(database, "session_renamed", session_id=session, title=title)

    def remove_session(self, session: str) -> None:
        """Remove a session and its messages."""
        with self._changing() as database:
            database.execute("DELETE FROM sessions WHERE session = ?", (session,))
            database.execute("DELETE FROM messages WHERE session = ?", (session,))
            self._note(database, "session_deleted", session_id=session)

    def note_branch(self, session: str, branch: str, parent: str) -> None:
        """Note that a branch was made."""
        with self._changing() as database:
            facts = {"session_id": session, "branch": branch, "parent": parent}
            self._note(database, "branch_created", **facts)

    def note_renamed_branch(self, session: str, branch: str, title: str) -> None:
        """Note that a branch was given a title."""
        with self._changing() as database:
            facts = {"session_id": session, "branch": branch, "title": title}
            self._note(database, "branch_renamed", **facts)

    def note_merge(self, session: str, branch: str, source: str) -> None:
        """Note that the memory of a branch was merged into another."""
        with self._changing() as database:
            facts = {"session_id": session, "branch": branch, "source": source}
            self._note(database, "branch_merged", **facts)

    def note_confirmation(self, session: str, branch: str) -> None:
        """Note that a branch asks for confirmation now, or does so no longer."""
        with self._changing() as database:
            facts = {"session_id": session, "branch": branch}
            self._note(database, "confirmation_changed", **facts)

    def add_message(self, message: IndexedMessage) -> None:
        """Add a message that was accepted; its id must be new."""
        row = {**asdict(message), "created_at": _now()}
        with self._changing() as database:
            insert_row(database, "messages", row)
            self._note_message(database, message.id)

    def update(self, message_id: str, **changed: object) -> None:
        """Change fields of a message."""
        names = ", ".join(f"{name} = ?" for name in changed)
        with self._changing() as database:
            values = (*changed.values(), message_id)
            database.execute(f"UPDATE messages SET {names} WHERE id = ?", values)
            self._note_message(database, message_id)

    def _note_message(self, database: sqlite3.Connection, message_id: str) -> None:
        sql = "SELECT session, branch, state, round_id FROM messages WHERE id = ?"
        row = database.execute(sql, (message_id,)).fetchone()
        if row is not None:
            names = ("session_id", "branch", "state", "round_id")
            facts = dict(zip(names, row, strict=True))
            self._note(database, f"message_{facts['state']}", message_id=message_id, **facts)

    def message(self, message_id: str) -> IndexedMessage | None:
        """Return a message; None if there is none of this id."""
        found = self._messages("id = ?", message_id)
        return found[0] if found else None

    def messages(self, session: str = "", states: tuple[str, ...] = ()) -> list[IndexedMessage]:
        """Return the messages of a session, or of all, that are in one of some states, or any."""
        marks = ", ".join("?" * len(states))
        where = " AND ".join(
            ["session = ?" if session else "1", f"state IN ({marks})" if states else "1"]
        )
        return self._messages(where, *([session] if session else []), *states)

    def _messages(self, where: str, *values: object) -> list[IndexedMessage]:
        names = ", ".join(item.name for item in fields(IndexedMessage))
        sql = f"SELECT {names} FROM messages WHERE {where} ORDER BY created_at, rowid"
        return [IndexedMessage(*row) for row in self._rows(sql, *values)]

    @property
    def last_change(self) -> int:
        """Number of the newest change; 0 before the first."""
        ((number,),) = self._rows("SELECT coalesce(max(number), 0) FROM changes")
        return int(number)

    def read(self, after: int, limit: int) -> list[IndexChange]:
        """Return the changes after one, the oldest first.

        Raises:
            EventsGone: If some of them are no longer kept.
            EventsToCome: If there is no change of that number yet.
        """
        last = self.last_change
        if after > last:
            raise EventsToCome(f"The newest change is {last}; {after} is yet to come.")
        if after < last - _MOST_CHANGES:
            raise EventsGone(after, last - _MOST_CHANGES + 1)
        sql = "SELECT number, kind, data FROM changes WHERE number > ? ORDER BY number LIMIT ?"
        return [IndexChange(*row) for row in self._rows(sql, after, limit)]

    def listen(self, on_change: Callable[[], None]) -> None:
        """Call a function after each change, in the thread that made it."""
        self._listeners.append(on_change)

    def unlisten(self, on_change: Callable[[], None]) -> None:
        """Call a function no longer."""
        self._listeners.remove(on_change)


def _now() -> str:
    return datetime.now(UTC).isoformat()
