"""Owner of the sessions of all users of a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.session_manager import InMemorySessionStore, SessionManager
from taskweaver.memory.attachment import AttachmentType
from taskweaver.server.accounts import LOCAL_USER, Accounts
from taskweaver.server.admission import User, UserHolding
from taskweaver.server.agents.conversation import RoundWorkers, UserConversation
from taskweaver.server.agents.following import StreamReaders
from taskweaver.server.agents.index import AgentIndexes, IndexedMessage
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.errors import stopping
from taskweaver.utils.text import fenced

_CODE = "code"
PROGRESS = (_CODE, "post_status_update", "post_execution_output", "post_confirmation_request")
"""Kinds of texts by which a client hears what is under way: code of a cell, and of events."""
_RUNS = "running code"
_IDLE_S = 60.0
_LOOK_S = 15.0
_INTERRUPTED_S = 5.0


class AgentSessions:
    """The sessions of all users. Needs `finish` and `close`.

    Attributes:
        readers: The readers of event streams.
        accounts: The accounts.
        app: The application.
        folder: Folder with the users' folders.
    """

    def __init__(
        self, app: TaskWeaverApp, accounts: Accounts, folder: Path, indexes: AgentIndexes
    ) -> None:
        """Prepare for users, whose folders are below `folder`.

        The person who started the server has the sessions of the project itself. The caller closes
        the application and the accounts; the indexes are closed with the sessions.
        """
        self.app = app
        self.accounts = accounts
        self.readers = StreamReaders()
        self.folder = folder
        self._indexes = indexes
        self._workers = RoundWorkers(accounts, app.log)
        self._users: dict[str, UserSessions] = {}
        self._opening: dict[str, asyncio.Task[UserSessions]] = {}
        self._sweep: asyncio.Task[None] | None = None

    async def of(self, user: User) -> UserSessions:
        """Return the sessions of a user. Their index is opened at the first time."""
        self._check_running()
        found = self._users.get(user.name)
        if found is None:
            if user.name not in self._opening:
                self._begin_opening(user)
            found = await asyncio.shield(self._opening[user.name])
            self._check_running()
        found.user = user
        return found

    def _check_running(self) -> None:
        if self._workers.admission.is_stopping:
            raise stopping()

    def _begin_opening(self, user: User) -> None:
        """Open the index of a user to its end, whoever waits for it: only then it can be closed."""

        def end(opening: asyncio.Task[UserSessions]) -> None:
            del self._opening[user.name]
            # Those who wait are told of an error.
            if not opening.cancelled() and opening.exception() is None:
                own = self._users[user.name] = opening.result()
                holding = UserHolding(own.folder, own.kernels, own.unused)
                self._workers.admission.add(user.name, holding)

        if self._sweep is None:
            self._sweep = asyncio.ensure_future(self._sweeping())
        opening = asyncio.ensure_future(asyncio.to_thread(self._made, user))
        opening.add_done_callback(end)
        self._opening[user.name] = opening

    def _made(self, user: User) -> UserSessions:
        if user.name == LOCAL_USER:
            folder, manager = self.app.workspace, self.app.session_manager
        else:
            folder = self.folder / user.name
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            manager = SessionManager(InMemorySessionStore(), self.app.app_injector, folder)
        index = self._indexes.of(user.name, manager.sessions_folder.parent)
        return UserSessions(user, index, folder, manager, self._workers)

    async def _sweeping(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            for sessions in list(self._users.values()):
                await sessions.release_idle(_IDLE_S)
                if sessions.index.is_shared:
                    await sessions.mark_open_messages()

    async def finish(self, grace_s: float) -> None:
        """Refuse new messages, let running rounds end within a time, then interrupt."""
        self._workers.admission.stop()
        if self._sweep is not None:
            self._sweep.cancel()
        open_ = [item for sessions in self._users.values() for item in sessions.open_conversations]
        settled = asyncio.gather(*(item.settle() for item in open_))
        try:
            async with asyncio.timeout(grace_s):
                await asyncio.shield(settled)
        except TimeoutError:
            ends = asyncio.gather(*(item.interrupt() for item in open_), return_exceptions=True)
            await asyncio.wait([asyncio.gather(settled, ends)], timeout=_INTERRUPTED_S)
        finally:
            self.readers.stop()

    async def close(self) -> None:
        """Close the sessions of all users. Safe to call again."""
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        users, self._users = list(self._users.values()), {}
        closing = (sessions.close() for sessions in users)
        outcomes = await asyncio.gather(*closing, return_exceptions=True)
        self._workers.log_failures("the sessions of a user are not closed", outcomes)
        await asyncio.to_thread(self._indexes.close)


@dataclass(slots=True)
class SilentMessage:
    """A message whose client follows the answer, and is shown no requests for confirmation."""

    sessions: AgentSessions
    user: User
    conversation: UserConversation
    message: IndexedMessage
    _after: int = 0

    async def submit(self) -> None:
        """Send the message.

        Raises:
            RequestRefused: If the user may have no further kernel, money or message.
        """
        self._after = self.conversation.session.events.last
        own = await self.sessions.of(self.user)
        share = await own.reserve(self.conversation, self.message.branch)
        await self.conversation.submit(self.user, self.message, share)

    async def events(self) -> AsyncIterator[tuple[str, str]]:
        """Yield kind and text of the branch's events, and cells, until the outcome is written."""
        cells = dict[str, str]()  # by the attachments that they are written in
        session, open_messages = self.conversation.session, self.conversation.open_messages
        sources, end = {"": session.events}, open_messages.end_of(self.message.id)
        async for events in self.sessions.readers.follow(sources, {"": self._after}, end):
            for _, event in events:
                fields = json.loads(event.data)
                text = fields["msg"]
                if fields["branch"] == self.message.branch and text:
                    if event.kind == "post_confirmation_request":
                        where = "on the page or by the agent API"
                        text = f"waits for a yes in session {session.session_id}, {where}: {text}"
                    if fields["extra"].get("type") == AttachmentType.reply_content.value:
                        id_ = fields["extra"]["id"]
                        cells = {id_: cells.get(id_, "") + text}
                    elif text == _RUNS and cells:
                        yield _CODE, fenced("".join(cells.values()), "python")
                    yield event.kind, text

    async def give_up(self) -> None:
        """Withdraw the message, or stop the answer, unless the message has ended."""
        if self.message.id in self.conversation.open_messages:
            await self.conversation.give_up(self.message.id)
