"""Indexes of users: titles, messages and changes, in files or one database of several servers."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.databases.address import PostgresAddress, SharedDatabaseConfig
from taskweaver.server.databases.sqlite import SQLITE_INDEX, SqliteDatabase
from taskweaver.server.databases.statements import (
    LoopCalls,
    Row,
    RunStatement,
    ServerDatabase,
    insert_row,
)
from taskweaver.server.errors import conflict
from taskweaver.server.operations import missing
from taskweaver.session.errors import check_events
from taskweaver.session.storage.event_log import NumberedEvent

OPEN_STATES = ("queued", "running")

_MOST_CHANGES, _TIDIED_AFTER = 10_000, 100
_CUT = "The server ended before this message was answered."
_NOTED = "session, branch, state, round_id"
_ADD_SESSION = 'INSERT INTO sessions ("user", session, title, created_at) VALUES (?, ?, ?, ?)'


Activity = Literal["idle", "running", "asks", "failed", "stopped"]


class IndexedSession(NamedTuple):
    """A session in the index. `title` is empty until the user chooses a title."""

    session: str
    title: str
    created_at: str


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session of a user.

    Attributes:
        session_id: Its id.
        title: Title that the user gave it, or the first line of the first question.
        rounds: Number of rounds on its first branch.
        changed_at: Time of the last change.
        state: ``open``, ``stored``, ``locked`` by another program, or ``damaged``.
        problem: Reason why it cannot be opened; empty if it can.
        branches: Number of its branches; 0 for a damaged one.
        activity: ``asks`` for confirmation, ``running``, ``failed`` in its newest round or
            ``stopped`` by a person there, or ``idle``.
    """

    session_id: str
    title: str
    rounds: int
    changed_at: datetime
    state: Literal["open", "stored", "locked", "damaged"]
    problem: str = ""
    branches: int = 1
    activity: Activity = "idle"


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
        server: Id of the server that accepted it.
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
    server: str = ""

    def require_same(self, other: IndexedMessage) -> None:
        """Check that another message of this id is the same one.

        Raises:
            RequestRefused: If it is another one.
        """
        names = ("session", "branch", "kind", "text")
        if any(getattr(self, name) != getattr(other, name) for name in names):
            raise conflict(f"Message {self.id} has another text, branch or session already.")


_FIELDS = tuple(item.name for item in fields(IndexedMessage))


class IndexServers(Protocol):
    """The servers that share an index, seen from one server.

    Attributes:
        id: Id of this server, another one at each start.
    """

    id: str

    def ended(self, database: ServerDatabase, servers: Sequence[str]) -> list[str]:
        """Return the given servers of a database that have ended."""

    def listen(self, user: str, on_change: Callable[[], None]) -> None:
        """Call a function when another server may have changed the index of a user."""

    def unlisten(self, user: str) -> None:
        """Call the function of a user no longer."""


class Listeners:
    """Functions that are called after changes, in the thread that made or heard of the change."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def listen(self, on_change: Callable[[], None]) -> None:
        """Call a function after each change."""
        self._listeners.append(on_change)

    def unlisten(self, on_change: Callable[[], None]) -> None:
        """Call a function no longer."""
        self._listeners.remove(on_change)

    def wake(self) -> None:
        """Call the functions that listen."""
        for listener in tuple(self._listeners):
            listener()


class AgentIndex(Listeners):
    """A thread-safe index, whose listeners hear of each change. Needs `close`.

    A change is on disk when its method returns.

    The methods raise ServerError if the database cannot be read or written.

    Attributes:
        calls: Calls of the methods from the event loop.
        server: Id of this server.
        is_shared: Whether several servers use it.
    """

    def __init__(
        self, database: ServerDatabase, servers: IndexServers | None = None, user: str = ""
    ) -> None:
        """Use the index of a user in a database, which the caller closes.

        Messages that the sudden end of a server cut are marked; where others share the index, by
        every reading.

        Args:
            database: The database.
            servers: The servers that share it; None for this one alone.
            user: Name of the user; empty where the database has the index of one alone.
        """
        super().__init__()
        self._database = database
        self._servers = servers
        self._user = user
        self._marking = threading.Lock()
        self.calls = LoopCalls(database)
        self.server = secrets.token_hex(8) if servers is None else servers.id
        self.is_shared = servers is not None
        if servers is not None:
            servers.listen(user, self.wake)
        else:
            self._mark_cut(self.messages(states=OPEN_STATES))

    def close(self) -> None:
        """Hear of changes no longer."""
        if self._servers is not None:
            self._servers.unlisten(self._user)

    @contextmanager
    def _changing(self) -> Iterator[RunStatement]:
        """Change the index in a transaction, then call the listeners."""
        with self._database.changing(self._user) as run:
            yield run
        self.wake()

    def _note(self, run: RunStatement, kind: str, **data: object) -> None:
        sql = (
            'INSERT INTO changes ("user", number, kind, data)'
            " SELECT ?, coalesce(max(number), 0) + 1, ?, ? FROM changes"
            ' WHERE "user" = ? RETURNING number'
        )
        ((number,),) = run(sql, self._user, kind, json.dumps(data), self._user).rows
        if number % _TIDIED_AFTER == 0:
            sql = 'DELETE FROM changes WHERE "user" = ? AND number <= ?'
            run(sql, self._user, number - _MOST_CHANGES)

    def sessions(self) -> list[IndexedSession]:
        """Return the sessions, the newest first."""
        sql = (
            'SELECT session, title, created_at FROM sessions WHERE "user" = ?'
            " ORDER BY created_at DESC"
        )
        return [IndexedSession(*row) for row in self._database.rows(sql, self._user)]

    def unused_sessions(self) -> int:
        """Return the number of sessions in which nothing was asked."""
        sql = (
            'SELECT count(*) FROM sessions WHERE "user" = ? AND NOT EXISTS (SELECT 1 FROM messages'
            " WHERE messages.session = sessions.session)"
        )
        return int(self._database.rows(sql, self._user)[0][0])

    def add_session(self, session: str, title: str) -> None:
        """Add a session."""
        with self._changing() as run:
            run(f"{_ADD_SESSION} ON CONFLICT DO NOTHING", self._user, session, title, _now())
            self._note(run, "session_created", session_id=session, title=title)

    def rename_session(self, session: str, title: str) -> None:
        """Give a session a title."""
        with self._changing() as run:
            sql = 'UPDATE sessions SET title = ? WHERE "user" = ? AND session = ?'
            if not run(sql, title, self._user, session).changed:
                run(_ADD_SESSION, self._user, session, title, _now())
            self._note(run, "session_renamed", session_id=session, title=title)

    def remove_session(self, session: str) -> None:
        """Remove a session with all messages."""
        with self._changing() as run:
            for table in ("sessions", "messages"):
                sql = f'DELETE FROM {table} WHERE "user" = ? AND session = ?'
                run(sql, self._user, session)
            self._note(run, "session_deleted", session_id=session)

    def note(self, kind: str, session: str, **facts: object) -> None:
        """Note a change of a session that is kept elsewhere."""
        with self._changing() as run:
            self._note(run, kind, session_id=session, **facts)

    def add_message(self, message: IndexedMessage) -> IndexedMessage:
        """Add an accepted message with a new id, and return the stored message."""
        new = replace(message, created_at=_now(), server=self.server)
        row = {name: getattr(new, name) for name in _FIELDS}
        with self._changing() as run:
            insert_row(run, "messages", {"user": self._user, **row})
            self._note_message(run, new.id, (new.session, new.branch, new.state, new.round_id))
        return new

    def update(self, message_id: str, **changed: object) -> None:
        """Change fields of a message."""
        names = ", ".join(f"{name} = ?" for name in changed)
        with self._changing() as run:
            sql = f'UPDATE messages SET {names} WHERE "user" = ? AND id = ? RETURNING {_NOTED}'
            for row in run(sql, *changed.values(), self._user, message_id).rows:
                self._note_message(run, message_id, row)

    def _note_message(self, run: RunStatement, message_id: str, row: Row) -> None:
        facts = dict(zip(("session_id", "branch", "state", "round_id"), row, strict=True))
        self._note(run, f"message_{facts['state']}", message_id=message_id, **facts)

    def message(self, message_id: str) -> IndexedMessage | None:
        """Return the message of an id, or None."""
        found = self._messages("id = ?", message_id)
        return found[0] if found else None

    def message_of(self, session: str, message_id: str) -> IndexedMessage:
        """Return a message of a session.

        Raises:
            RequestRefused: If the session has none of this id.
        """
        found = self.message(message_id)
        if found is None or found.session != session:
            raise missing("Message", message_id[:128])
        return found

    def messages(self, session: str = "", states: tuple[str, ...] = ()) -> list[IndexedMessage]:
        """Return the messages of a session, or of all, that are in one of some states, or any."""
        marks = ", ".join("?" * len(states))
        where = " AND ".join(
            ["session = ?" if session else "1 = 1", f"state IN ({marks})" if states else "1 = 1"]
        )
        return self._messages(where, *([session] if session else []), *states)

    def _messages(self, where: str, *values: object) -> list[IndexedMessage]:
        found = self._as_written(where, *values)
        if self.is_shared and self._mark_cut(found):
            return self._as_written(where, *values)
        return found

    def _as_written(self, where: str, *values: object) -> list[IndexedMessage]:
        names = ", ".join(_FIELDS)
        sql = (
            f'SELECT {names} FROM messages WHERE "user" = ? AND {where} ORDER BY created_at, rowid'
        )
        return [IndexedMessage(*row) for row in self._database.rows(sql, self._user, *values)]

    def _mark_cut(self, messages: Sequence[IndexedMessage]) -> bool:
        """Mark open messages of servers that have ended, and return whether there are any."""
        if not self._marking.acquire(blocking=False):
            return False  # another thread does it, and may wait for the lock of the user
        try:
            return self._mark(messages)
        finally:
            self._marking.release()

    def _mark(self, messages: Sequence[IndexedMessage]) -> bool:
        open_ = [one for one in messages if one.state in OPEN_STATES and one.server != self.server]
        ended = sorted({one.server for one in open_})
        if ended and self._servers is not None:  # else any other server has ended
            ended = self._servers.ended(self._database, ended)
        cut = [one for one in open_ if one.server in ended]
        for one in cut:
            self.mark_stopped(one, _CUT)
        return bool(cut)

    def is_queued_here(self, message: IndexedMessage) -> bool:
        """Return whether a message is queued at this server."""
        return message.state == "queued" and message.server == self.server

    def mark_stopped(self, message: IndexedMessage, answer: str) -> None:
        """Mark a message unless the state has changed since the reading."""
        sql = (
            "UPDATE messages SET state = ?, answer = ?"
            ' WHERE "user" = ? AND id = ? AND server = ? AND state = ?'
            f" RETURNING {_NOTED}"
        )
        key = (self._user, message.id, message.server, message.state)
        with self._changing() as run:
            for row in run(sql, "stopped", answer, *key).rows:  # none if another was faster
                self._note_message(run, message.id, row)

    @property
    def last_change(self) -> int:
        """Number of the newest change. 0 before the first."""
        sql = 'SELECT coalesce(max(number), 0) FROM changes WHERE "user" = ?'
        ((number,),) = self._database.rows(sql, self._user)
        return int(number)

    def read(self, after: int, limit: int) -> list[NumberedEvent]:
        """Return the changes after one, the oldest first.

        Raises:
            EventsGone: If some of them are no longer kept.
            EventsToCome: If there is no change of that number yet.
        """
        last = self.last_change
        check_events(after, last - _MOST_CHANGES + 1, last)
        sql = (
            'SELECT number, kind, data FROM changes WHERE "user" = ? AND number > ?'
            " ORDER BY number LIMIT ?"
        )
        rows = self._database.rows(sql, self._user, after, limit)
        return [NumberedEvent(*row) for row in rows]


def _now() -> str:
    return datetime.now(UTC).isoformat()


class FileIndexes:
    """Indexes in one file for each user, which one server uses."""

    def __init__(self, folder: Path | None = None) -> None:
        """Keep the files in a folder of one user, or each beside the user's sessions."""
        self._folder = folder
        self._databases: list[SqliteDatabase] = []

    def of(self, user: str, folder: Path) -> AgentIndex:  # noqa: ARG002 - the folder is the user's
        """Return the index in a folder."""
        path = (self._folder or folder) / "agent.sqlite"
        database = SqliteDatabase(path, "The index", SQLITE_INDEX)
        try:
            index = AgentIndex(database)
        except BaseException:
            database.close()
            raise
        self._databases.append(database)
        return index

    def close(self) -> None:
        """Close the files."""
        for database in self._databases:
            database.close()


class SharedIndexes:
    """Indexes of all users in one set of tables."""

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Connect, and show the rest of the servers that this server lives.

        Raises:
            ServerError: If the database cannot be used.
        """
        from taskweaver.server.databases.postgresql import PostgresDatabase, ServerPresence

        self._presence = ServerPresence(address, log)
        try:
            self._database = PostgresDatabase(address, self._presence.id)
        except BaseException:
            self._presence.close()
            raise

    def of(self, user: str, folder: Path) -> AgentIndex:  # noqa: ARG002 - it is in no folder
        """Return the index of a user."""
        return AgentIndex(self._database, self._presence, user)

    def close(self) -> None:
        """Close the connections. The open messages of this server count as cut from now on."""
        self._presence.close()
        self._database.close()


AgentIndexes = FileIndexes | SharedIndexes
"""The indexes of all users, which `of` opens. Closed after the indexes."""


def open_indexes(config: SharedDatabaseConfig, log: TelemetryLogger) -> AgentIndexes:
    """Return the indexes of a project: in the configured database, else in files.

    Raises:
        ServerError: If the database cannot be used.
    """
    if config.address is None:
        return FileIndexes()
    return SharedIndexes(config.address, log)
