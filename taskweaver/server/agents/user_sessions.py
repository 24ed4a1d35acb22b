"""The sessions of one user, open and stored, and the quotas."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from taskweaver.app.session_manager import SessionManager
from taskweaver.ces.common import Client
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.server.admission import HeldShare, KernelName, User, used_up
from taskweaver.server.agents.conversation import RoundWorkers, UserConversation
from taskweaver.server.agents.index import (
    OPEN_STATES,
    Activity,
    AgentIndex,
    IndexedMessage,
    IndexedSession,
    ListedSession,
)
from taskweaver.server.databases.statements import DatabaseLost
from taskweaver.server.errors import RequestRefused, ServerError, stopping
from taskweaver.server.operations import missing
from taskweaver.server.transfer import folder_bytes
from taskweaver.session.branches.locks import PAST
from taskweaver.session.errors import SessionBusy, SessionError, SessionInUse
from taskweaver.session.session import Session
from taskweaver.session.storage.folder import is_locked
from taskweaver.session.storage.layout import RUN, SessionLayout, layout_of
from taskweaver.session.storage.stored_sessions import (
    SessionListing,
    remove_session,
    session_folders,
)
from taskweaver.utils.redact import redact_secrets_in
from taskweaver.utils.text import title_line

_MOST_FOUND, _TITLE_CHARS = 20, 60


def _found(
    store: BranchedMemory, session_id: str, layout: SessionLayout, query: str
) -> list[dict[str, Any]]:
    """Return the matches in a session's branches, once each: branches inherit matches."""
    found: dict[str, dict[str, Any]] = {}
    titles = {branch.id: branch.node_uid or branch.id for branch in store.branches()}
    for name in store:
        if layout.is_of_search(name):
            continue
        place = {"session": session_id, "branch": name, "branch_title": titles[name]}
        events = store[name].find_events(query, _MOST_FOUND)
        records = store[name].search(query, _MOST_FOUND)
        ends = [turn.end_seq for turn in store.turns.load(name, with_posts=False)]
        for event in events:
            number = sum(0 < end < event.seq for end in ends)  # written once its round has ended
            found.setdefault(event.text, place | {"number": number or None, "text": event.text})
        for record in records:
            if record.match != "recency":
                found.setdefault(record.text, place | {"number": None, "text": record.text})
    return list(found.values())


_LEFT_S = 10.0
"""Time for which a message whose acknowledgement was lost may be sent again before it is marked."""
_LEFT = "The database was lost before this message was answered. Send a new one."
_FRESH_S = 10.0
"""Time for which a session that was used is not closed for room: its request may still use it."""
_LOOKS_S = (0.01, 0.05, 0.0)
"""Pauses after a lock was tried: another server that lists sessions holds it for a moment."""


class UserSessions:
    """The sessions of a user. Needs `close`.

    Attributes:
        user: The user, as of the newest request.
        folder: Folder of all that the user's sessions write.
        index: Titles, messages and changes.
        manager: Owner of the session objects.
    """

    def __init__(
        self,
        user: User,
        index: AgentIndex,
        folder: Path,
        manager: SessionManager,
        workers: RoundWorkers,
    ) -> None:
        self.user = user
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
        """Make a session.

        Raises:
            RequestRefused: If the user's share is used up.
        """
        (await self._workers.admission.reserve(self.user)).close()
        async with self._opening:
            unused = await self.index.calls.in_thread(self.index.unused_sessions)
            if unused >= (most := self.user.quota.sessions):
                remedy = "Nothing was asked in those: use or delete some."
                raise used_up(self.user, "sessions", unused, most, remedy)
            # First: who hears of it finds it open.
            made = await self._added(self.manager.get_session)
        session_id = made.session.session_id
        try:
            await self.index.calls.change(self.index.add_session, session_id, title)
        except BaseException:
            self._open.pop(session_id, None)
            await made.close()
            raise
        return made

    @asynccontextmanager
    async def asked(self, session_id: str, text: str) -> AsyncIterator[UserConversation]:
        """Give a session, or a new one for an empty id, which goes where the block fails.

        The first line of the text is the title of a new one.
        So nothing is asked in a session that no client knows. Raises as `conversation`.
        """
        title = title_line(text)[:_TITLE_CHARS]
        found = await (self.conversation(session_id) if session_id else self.create(title))
        try:
            yield found
        except BaseException:
            if not session_id:
                await self.remove(found.session.session_id)
            raise

    async def conversation(self, session_id: str, *, is_end: bool = False) -> UserConversation:
        """Return a session, opened if need be, which holds no share where that is for an end.

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
                found = await self._added(partial(self._opened, session_id), is_end=is_end)
        return found

    def _opened(self, session_id: str) -> Session:
        if not self.index.is_shared:
            return self.manager.create_session(session_id)
        for pause_s in _LOOKS_S:
            with suppress(SessionInUse):
                return self.manager.create_session(session_id)
            threading.Event().wait(pause_s)
        detail = f"Session {session_id} is open at another server, or in a program there."
        detail += " Use it there, or release it there first."
        raise RequestRefused(409, "session-in-use", detail)

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

    async def _added(
        self, open_: Callable[[], Session], *, is_end: bool = False
    ) -> UserConversation:
        with HeldShare() if is_end else await self._session_share() as share:
            session = await asyncio.to_thread(open_)
            made = UserConversation(session, self.index, self._workers, share)
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
        stored = self._stored.read(self._runs(self.index.sessions()))
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
            config, layout = MemoryConfig(memory_log_enabled=False), layout_of(item.folder)
            with BranchedMemory(item.folder / layout.memory, config) as store:
                found += _found(store, item.session_id, layout, query)
            if len(found) >= _MOST_FOUND:
                break
        masked: list[dict[str, Any]] = redact_secrets_in(found[:_MOST_FOUND])
        return masked

    def _list(
        self, indexed: Sequence[IndexedSession], work: Mapping[str, Activity]
    ) -> list[ListedSession]:
        titles = {item.session: item for item in indexed}
        found = []
        for item in self._stored.read(self._runs(indexed)):
            id_, known = item.session_id, titles.pop(item.session_id, None)
            title = (known.title if known else "") or title_line(item.first_query)
            state = "damaged" if item.problem else self._state(id_, is_locked=item.is_open)
            facts = (item.rounds, item.changed_at, state, item.problem, item.branches)
            activity = work.get(id_, "failed" if item.has_failed else "idle")
            found.append(ListedSession(id_, title, *facts, activity))
        for id_, known in titles.items():  # those in which nothing was asked yet
            at, folder = datetime.fromisoformat(known.created_at), self.manager.folder_of(id_)
            state = self._state(id_, is_locked=id_ not in self._open and is_locked(folder))
            activity = work.get(id_, "idle")
            found.append(ListedSession(id_, known.title, 0, at, state, activity=activity))
        return sorted(found, key=lambda item: (item.changed_at, item.session_id), reverse=True)

    def _runs(self, indexed: Sequence[IndexedSession]) -> list[Path]:
        """Return the folders of the runs of the tree search whose chats the user has."""
        folders = (self.manager.folder_of(item.session) for item in indexed)
        return [folder for folder in folders if layout_of(folder) is RUN]

    def _state(self, session_id: str, *, is_locked: bool) -> Literal["open", "stored", "locked"]:
        if session_id in self._open:
            return "open"
        return "locked" if is_locked else "stored"

    async def remove(self, session_id: str) -> None:
        """Stop a session, and delete all files; of a run, which keeps its chats, none.

        Raises as `conversation`.
        """
        folder = self.manager.folder_of(session_id)
        await self.conversation(session_id, is_end=True)
        async with self._opening:  # nobody opens it meanwhile
            conversation = self._open.pop(session_id, None)
            if conversation is None:
                raise missing("Session", session_id[:128])
            await conversation.close()
            if layout_of(folder) is not RUN:
                await asyncio.to_thread(remove_session, folder.parent, session_id)
            await self.index.calls.change(self.index.remove_session, session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raises as `conversation`."""
        await self.conversation(session_id)
        await self.index.calls.change(self.index.rename_session, session_id, title)

    async def release_idle(self, idle_s: float) -> None:
        """End the processes of sessions that nobody used for a while, if their state is stored.

        Where other servers may open the sessions, those that nobody reads are closed.
        """
        latest = time.monotonic() - idle_s
        for conversation in self.open_conversations:
            with self._logged(conversation, "released"):
                await asyncio.to_thread(conversation.session.moment_kernel.end_unused, latest)
                used_at = conversation.used_at
                if conversation.last_use() > latest or conversation.is_at_work:
                    continue
                await conversation.release(loses_none=True)
                if self.index.is_shared or layout_of(conversation.session.workspace) is RUN:
                    await self._close_if_unused(conversation, used_at)

    @contextmanager
    def _logged(self, conversation: UserConversation, done: str) -> Iterator[None]:
        try:
            yield
        except SessionError:  # in use again, or stopped by a client
            return
        except Exception:
            session_id = conversation.session.session_id
            self._workers.log.exception(f"session {session_id} is not {done}")

    async def _session_share(self) -> HeldShare:
        """Hold a session. Those that are unused the longest are closed for room.

        Raises:
            RequestRefused: If too many are in use.
        """
        latest = time.monotonic() - _FRESH_S
        known = sorted(self.open_conversations, key=lambda item: item.used_at)
        unused = (item for item in known if item.used_at < latest)
        while True:
            try:
                return self._workers.admission.take(self.user, "sessions")
            except RequestRefused:
                conversation = next(unused, None)
                if conversation is None:
                    raise
            with self._logged(conversation, "closed"):
                await self._close_now_if_unused(conversation, conversation.used_at)

    async def release(self, session_id: str) -> None:
        """End the processes of a session, and close one that nobody reads.

        Raises:
            SessionBusy: If a branch is at work.
            Exception: As `conversation`.
        """
        conversation = await self.conversation(session_id, is_end=True)
        used_at = conversation.used_at
        await conversation.release()
        await self._close_if_unused(conversation, used_at)

    async def stop(self, session_id: str, branch: str) -> bool:
        """Interrupt a branch as `UserConversation.stop`. Raises as `conversation`."""
        is_open = session_id in self._open
        conversation = await self.conversation(session_id, is_end=True)
        was_running = conversation.stop(branch)
        if not is_open:
            await self._close_if_unused(conversation, conversation.used_at)
        return was_running

    async def let_go(self, session_id: str) -> None:
        """Close a session, if it is open, for another process.

        Raises:
            SessionBusy: If it is at work.
        """
        async with self._opening:
            found = self._open.get(session_id)
            if found is not None:
                if found.is_at_work:
                    raise SessionBusy(f"A chat of {session_id} is at work; stop it, or wait.")
                del self._open[session_id]
                await found.close()
            await asyncio.to_thread(self.manager.stop_session, session_id)

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
        """Close a session that is idle, that nobody reads, and was not used after a time."""
        async with self._opening:
            await self._close_now_if_unused(conversation, used_at)

    async def _close_now_if_unused(self, conversation: UserConversation, used_at: float) -> None:
        is_in_use = conversation.is_at_work or conversation.session.events.has_readers
        if not is_in_use and conversation.used_at <= used_at:
            self._open.pop(conversation.session.session_id, None)
            await conversation.close()

    async def reserve(self, conversation: UserConversation, branch: str) -> HeldShare:
        """Hold a kernel of a branch, or of `PAST`, for work that begins.

        Raises:
            RequestRefused: If the user's share is used up.
        """
        name = conversation.session.session_id, branch
        return await self._workers.admission.reserve(self.user, name)

    def kernels(self) -> dict[KernelName, Client]:
        """Return the kernels of open sessions."""
        return {
            (item.session.session_id, branch): client
            for item in self.open_conversations
            for branch, client in item.session.kernels.items()
        }

    def unused(self, wanted: KernelName) -> Iterator[Callable[[], Awaitable[None]]]:
        """Yield functions that each end unused kernels, for room for one that is wanted.

        Those of past moments end first, then those of other sessions, then those of the session
        itself; for a past moment these stay.
        """
        session_id, branch = wanted
        idle = sorted(self.open_conversations, key=lambda item: item.used_at)
        own = [item for item in idle if item.session.session_id == session_id]
        idle = [item for item in idle if item not in own]
        if branch != PAST:
            idle += own
        for item in idle:
            yield partial(asyncio.to_thread, item.session.moment_kernel.end_unused)
        for item in idle:
            yield item.release

    async def fork(
        self,
        conversation: UserConversation,
        source: str,
        name: str = "",
        at_round: int | None = None,
        *,
        title: str = "",
        waits: bool = False,
    ) -> str:
        """Fork a branch in turn, see `UserConversation.change`, and return the name of the fork.

        Raises:
            RequestRefused: If the user's share is used up.
            SessionError: As `SessionBranch.fork`.
        """
        kernel, size = None, 0
        if source in conversation.session.kernels:
            kernel = conversation.session.session_id, f"/{secrets.token_hex(4)}"
        if self.user.quota.disk_mb is not None:
            folder = conversation.branch(source).execution_cwd
            size = await asyncio.to_thread(folder_bytes, folder)
        with await self._workers.admission.reserve(self.user, kernel, size):
            # Opened again if it was released meanwhile.
            kept = await self.conversation(conversation.session.session_id)
            return await kept.change(
                source,
                lambda branch: branch.fork(name, at_round=at_round, title=title),
                waits=waits,
            )

    async def close(self) -> None:
        """Close the sessions and the index."""
        closing = (item.close() for item in self.open_conversations)
        outcomes = await asyncio.gather(*closing, return_exceptions=True)
        self._workers.log_failures("a session is not closed", outcomes)
        await asyncio.to_thread(self.manager.close)
        self.index.close()
