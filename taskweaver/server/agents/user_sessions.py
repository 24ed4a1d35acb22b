"""The sessions of one user, open and stored, and the quotas."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from taskweaver.app.session_manager import SessionManager
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.server.accounts import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import OPEN_STATES, AgentIndex, IndexedMessage, IndexedSession
from taskweaver.server.agents.workers import RoundWorkers
from taskweaver.server.databases.statements import DatabaseLost
from taskweaver.server.errors import RequestRefused, ServerError, quota_used_up, stopping
from taskweaver.server.operations import missing
from taskweaver.server.transfer import disk_room
from taskweaver.session.branches.locks import PAST
from taskweaver.session.errors import SessionBusy, SessionError, SessionInUse
from taskweaver.session.session import Session
from taskweaver.session.storage.folder import MEMORY_FILE, is_locked
from taskweaver.session.storage.stored_sessions import (
    SessionListing,
    remove_session,
    session_folders,
    stored_sessions,
)
from taskweaver.utils.redact import redact_secrets_in
from taskweaver.utils.text import title_line

_MOST_FOUND = 20


def _found(store: BranchedMemory, session_id: str, query: str) -> list[dict[str, Any]]:
    """Return the matches in a session's branches, once each: branches inherit matches."""
    found: dict[str, tuple[str, int | None]] = {}
    for name in store:
        events = store[name].find_events(query, _MOST_FOUND)
        records = store[name].search(query, _MOST_FOUND)
        ends = [turn.end_seq for turn in store.turns.load(name, with_posts=False)]
        for event in events:
            number = sum(0 < end < event.seq for end in ends)  # written once its round has ended
            found.setdefault(event.text, (name, number or None))
        for record in records:
            if record.match != "recency":
                found.setdefault(record.text, (name, None))
    titles = {branch.id: branch.node_uid or branch.id for branch in store.branches()}
    return [
        {
            "session": session_id,
            "branch": name,
            "branch_title": titles[name],
            "number": number,
            "text": text,
        }
        for text, (name, number) in found.items()
    ]


_LEFT_S = 10.0
"""Time for which a message whose acknowledgement was lost may be sent again before it is marked."""
_LEFT = "The database was lost before this message was answered. Send a new one."
_LOOKS_S = (0.01, 0.05)
"""Pauses before a lock is tried again: another server that lists sessions holds it for a moment."""

Activity = Literal["idle", "running", "asks", "failed"]


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session of a user.

    Attributes:
        id: Its id.
        title: Title that the user gave it, or the first line of the first question.
        rounds: Number of rounds on its first branch.
        changed_at: Time of the last change.
        state: ``open``, ``stored``, ``locked`` by another program, or ``damaged``.
        problem: Reason why it cannot be opened; empty if it can.
        branches: Number of its branches; 0 for a damaged one.
        activity: ``asks`` for confirmation, ``running``, ``failed`` in its newest round, or
            ``idle``.
    """

    id: str
    title: str
    rounds: int
    changed_at: datetime
    state: str
    problem: str = ""
    branches: int = 1
    activity: Activity = "idle"


class UserSessions:
    """The sessions of a user. Needs `close`.

    Attributes:
        folder: Folder of all that the user's sessions write.
        index: Titles, messages and changes.
        manager: Owner of the session objects.
    """

    def __init__(
        self,
        index: AgentIndex,
        folder: Path,
        manager: SessionManager,
        workers: RoundWorkers,
    ) -> None:
        self.folder = folder
        self.manager = manager
        self.index = index
        self._workers = workers
        self._stored = SessionListing(manager.sessions_folder)
        self._open: dict[str, UserConversation] = {}
        self._opening = asyncio.Lock()
        self._left_since: dict[str, float] = {}

    @property
    def open_conversations(self) -> list[UserConversation]:
        """The sessions that are open."""
        return list(self._open.values())

    async def create(self, title: str) -> UserConversation:
        """Make a session."""
        async with self._opening:
            session = await asyncio.to_thread(self.manager.get_session)
            made = self._added(session)  # first: who hears of it finds it open
        try:
            await self.index.calls.change(self.index.add_session, session.session_id, title)
        except BaseException:
            self._open.pop(session.session_id, None)
            await asyncio.to_thread(session.stop)
            raise
        return made

    async def conversation(self, session_id: str) -> UserConversation:
        """Return a session, opened if need be.

        Raises:
            RequestRefused: If the user has no such session.
            SessionInUse: If another program has it open.
            TaskWeaverError: If it cannot be opened.
        """
        found = self._open.get(session_id)
        if found is not None and not found.session.is_closed:
            found.used_at = time.monotonic()
            return found
        async with self._opening:
            if self._workers.admission.is_stopping:
                raise stopping()
            found = self._open.get(session_id)
            if found is None or found.session.is_closed:
                await self.index.calls.in_thread(self._require, session_id)
                found = self._added(await asyncio.to_thread(self._opened, session_id))
        return found

    def _opened(self, session_id: str) -> Session:
        if not self.index.is_shared:
            return self.manager.create_session(session_id)
        for pause_s in _LOOKS_S:
            with suppress(SessionInUse):
                return self.manager.create_session(session_id)
            threading.Event().wait(pause_s)
        try:
            return self.manager.create_session(session_id)
        except SessionInUse as error:
            detail = f"Session {session_id} is open at another server, or in a program there."
            detail += " Use it there, or release it there first."
            raise RequestRefused(409, "session-in-use", detail) from error

    def _require(self, session_id: str) -> None:
        folder = self.manager.sessions_folder
        is_indexed = any(item.session == session_id for item in self.index.sessions())
        is_stored = session_id in {item.name for item in session_folders(folder)}
        if not (is_indexed or is_stored):
            raise missing("Session", session_id[:128])

    async def messages(self, session_id: str) -> list[IndexedMessage]:
        """Return the messages of a session, whichever program has opened the session.

        Raises:
            RequestRefused: If the user has no such session.
        """

        def read() -> list[IndexedMessage]:
            self._require(session_id)
            return self.index.messages(session_id)

        return await self.index.calls.in_thread(read)

    def _added(self, session: Session) -> UserConversation:
        made = UserConversation(session, self.index, self._workers)
        self._open[session.session_id] = made
        return made

    async def listed(self) -> list[ListedSession]:
        """Return the sessions, the newest first."""
        async with self._opening:  # to look whether one is locked takes its lock for a moment
            indexed = await self.index.calls.in_thread(self.index.sessions)
            work: dict[str, Activity] = {
                item.session.session_id: "asks" if item.confirmations.waiting() else "running"
                for item in self.open_conversations
                if item.is_at_work
            }
            return await asyncio.to_thread(self._list, indexed, work)

    async def find(self, query: str, session_id: str) -> list[dict[str, Any]]:
        """Return the passages of one session, or of all, that have a word of a query.

        Raises:
            RequestRefused: If the user has no such session.
        """
        if session_id:
            await self.conversation(session_id)
        async with self._opening:
            return await asyncio.to_thread(self._find, query, session_id)

    def _find(self, query: str, session_id: str) -> list[dict[str, Any]]:
        """Return the passages, from the newest sessions first. Secrets are masked."""
        stored = stored_sessions(self.manager.sessions_folder)
        if session_id:
            stored = [item for item in stored if item.session_id == session_id]
            if not stored:
                raise SessionError(
                    f"There is no session {session_id!r}, or nothing was said in it."
                )
        found: list[dict[str, Any]] = []
        for item in stored:
            if item.problem:
                continue
            config = MemoryConfig(memory_log_enabled=False)
            with BranchedMemory(item.folder / MEMORY_FILE, config) as store:
                found += _found(store, item.session_id, query)
            if len(found) >= _MOST_FOUND:
                break
        masked: list[dict[str, Any]] = redact_secrets_in(found[:_MOST_FOUND])
        return masked

    def _list(
        self, indexed: Sequence[IndexedSession], work: Mapping[str, Activity]
    ) -> list[ListedSession]:
        titles = {item.session: item for item in indexed}
        found = []
        for item in self._stored.read():
            id_, known = item.session_id, titles.pop(item.session_id, None)
            title = (known.title if known else "") or title_line(item.first_query)
            state = "damaged" if item.problem else self._state(id_, is_locked=item.is_open)
            facts = (item.rounds, item.changed_at, state, item.problem, item.branches)
            activity = work.get(id_, "failed" if item.has_failed else "idle")
            found.append(ListedSession(id_, title, *facts, activity))
        for id_, known in titles.items():  # those in which nothing was asked yet
            at, folder = datetime.fromisoformat(known.created_at), self.manager.sessions_folder
            state = self._state(id_, is_locked=id_ not in self._open and is_locked(folder / id_))
            activity = work.get(id_, "idle")
            found.append(ListedSession(id_, known.title, 0, at, state, activity=activity))
        return sorted(found, key=lambda item: (item.changed_at, item.id), reverse=True)

    def _state(self, session_id: str, *, is_locked: bool) -> str:
        if session_id in self._open:
            return "open"
        return "locked" if is_locked else "stored"

    async def remove(self, session_id: str) -> None:
        """Stop a session, and delete all files. Raises as `conversation`."""
        await self.conversation(session_id)
        async with self._opening:  # nobody opens it meanwhile
            conversation = self._open.pop(session_id, None)
            if conversation is None:
                raise missing("Session", session_id[:128])
            await conversation.close()
            folder = self.manager.sessions_folder
            await asyncio.to_thread(remove_session, folder, session_id)
            await self.index.calls.change(self.index.remove_session, session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raises as `conversation`."""
        await self.conversation(session_id)
        await self.index.calls.change(self.index.rename_session, session_id, title)

    async def release_idle(self, idle_s: float) -> None:
        """End the processes of sessions that nobody used for a while."""
        latest = time.monotonic() - idle_s
        for conversation in self.open_conversations:
            with self._logged(conversation, "released"):
                await asyncio.to_thread(conversation.session.moment_kernel.end_unused, latest)
                if conversation.used_at > latest or conversation.is_at_work:
                    continue
                if await asyncio.to_thread(conversation.last_use) <= latest:
                    await conversation.release()

    @contextmanager
    def _logged(self, conversation: UserConversation, done: str) -> Iterator[None]:
        try:
            yield
        except SessionError:  # in use again, or stopped by a client
            return
        except Exception:
            session_id = conversation.session.session_id
            self._workers.log.exception(f"session {session_id} is not {done}")

    async def release(self, session_id: str) -> None:
        """End the processes of a session. A session that several servers may open is closed, too.

        Raises:
            SessionBusy: If a branch is at work.
            Exception: As `conversation`.
        """
        conversation = await self.conversation(session_id)
        await conversation.release()
        if self.index.is_shared:
            await self._close_if_unused(conversation, conversation.used_at)

    async def close_unused(self, idle_s: float, most: int) -> None:
        """Close the sessions with the oldest uses, until `most` are open.

        Where other servers may open them, also those that nobody used for a while.
        """
        latest = time.monotonic() - idle_s
        for conversation in sorted(self.open_conversations, key=lambda item: item.used_at):
            used_at, is_surplus = conversation.used_at, len(self._open) > most
            if conversation.session.events.has_readers:
                continue
            if is_surplus or self.index.is_shared:
                with self._logged(conversation, "closed"):
                    if is_surplus or await asyncio.to_thread(conversation.last_use) <= latest:
                        await self._close_if_unused(conversation, used_at)

    async def mark_open_messages(self) -> None:
        """Mark messages that will not be answered, and tell listeners of the index.

        These are the open ones of servers that have ended, and those that wait nowhere at this one,
        since the database was lost as they were written, unless they are sent again soon.
        """
        index = self.index
        try:
            open_ = await index.calls.in_thread(index.messages, states=OPEN_STATES)
            left = [one for one in open_ if self._waits_nowhere(one)]
            now = time.monotonic()
            self._left_since = {one.id: self._left_since.get(one.id, now) for one in left}
            for one in left:
                if now - self._left_since[one.id] >= _LEFT_S:
                    await self.index.calls.in_turn(self._mark_left, one)
        except DatabaseLost:  # the presence of the server logs that
            return
        except ServerError:
            self._workers.log.exception("open messages that will not be answered are not marked")

    def _waits_nowhere(self, message: IndexedMessage) -> bool:
        is_open = any(message.id in one.open_messages for one in self._open.values())
        return self.index.is_queued_here(message) and not is_open

    async def _mark_left(self, message: IndexedMessage) -> None:
        if self._waits_nowhere(message):  # in turn: it is not being sent again
            await self.index.calls.in_thread(self.index.mark_stopped, message, _LEFT)

    async def _close_if_unused(self, conversation: UserConversation, used_at: float) -> None:
        """Close a session that is idle, and was not used after a time."""
        async with self._opening:
            if not conversation.is_at_work and conversation.used_at <= used_at:
                self._open.pop(conversation.session.session_id, None)
                await conversation.close()

    async def check_kernels(self, user: User, conversation: UserConversation, branch: str) -> None:
        """Check that a branch, or `PAST`, may have a kernel, and end idle kernels for room.

        Those of past moments end first, then those of other sessions, then those of the session
        itself; for a past moment these stay.

        Raises:
            RequestRefused: If as many kernels as allowed are in use.
        """
        most = user.quota.kernels
        if most is None:
            return
        others = [item for item in self.open_conversations if item is not conversation]
        idle = sorted(others, key=lambda item: item.used_at)
        if branch != PAST:
            idle.append(conversation)
        ends: list[Callable[[], Awaitable[None]]] = [
            *(partial(asyncio.to_thread, item.session.moment_kernel.end_unused) for item in idle),
            *(item.release for item in idle),
        ]
        for end in ends:
            if await asyncio.to_thread(self._has_room, conversation, branch, most):
                return
            with suppress(SessionBusy):  # it is in use, maybe since just now
                await end()
        if not await asyncio.to_thread(self._has_room, conversation, branch, most):
            raise quota_used_up(f"{user.name} has {most} kernels in use, and may have no more.")

    def _has_room(self, conversation: UserConversation, branch: str, most: int) -> bool:
        kernels = {
            (item.session.session_id, name)
            for item in self.open_conversations
            for name in item.kernels()
        }
        own = (conversation.session.session_id, branch)
        return len(kernels | {own}) <= most

    async def check_disk(self, user: User) -> int | None:
        """Check the disk space of a user, and return the room in bytes (None: no limit).

        Raises:
            RequestRefused: If the quota is used up.
        """
        return await asyncio.to_thread(disk_room, user, self.folder)

    async def close(self) -> None:
        """Close the sessions and the index."""
        closing = (item.close() for item in self.open_conversations)
        outcomes = await asyncio.gather(*closing, return_exceptions=True)
        self._workers.log_failures("a session is not closed", outcomes)
        await asyncio.to_thread(self.manager.close)
        self.index.close()
