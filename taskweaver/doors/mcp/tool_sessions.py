"""Sessions of a user as the tools use them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from taskweaver.face.answer import AnswerFigure, is_picture, read_figures
from taskweaver.memory.cells import has_failed
from taskweaver.server.admission import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import PROGRESS, AgentSessions, SilentMessage
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.transfer import explained
from taskweaver.session.branches.turn import require_text
from taskweaver.session.storage.workdir import AddedFile, add_files
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

Progress = Callable[[str], Coroutine[Any, Any, None]]
RoundKind = Literal["ask", "code"]

_MOST_READ_BYTES, _MOST_LISTED = 8 << 20, 10_000


@dataclass(frozen=True)  # without slots, which the package takes for defaults
class RoundResult:
    """Result of a round.

    Attributes:
        answer: The answer, or the reason there is none.
        session: Id of the session, to continue it.
        branch: Its branch.
        is_answered: Whether the round was answered.
        files: Files that were made: absolute paths for a program of this machine, else names in
            the working directory.
        warnings: Parts that failed while the round continued without them.
    """

    answer: str
    session: str
    branch: str
    is_answered: bool
    files: list[str]
    warnings: list[str]


@dataclass(slots=True)
class ToolSessions:
    """The sessions of a user, within the user's quotas. All methods raise TaskWeaverError.

    A call without a branch works on the session's current one, which no call changes.

    Attributes:
        all: The sessions of all users.
        user: The user, as of the newest request.
        is_local: Whether the caller is a program of this machine.
    """

    all: AgentSessions
    user: User
    is_local: bool = False

    async def _own(self) -> UserSessions:
        return await self.all.of(self.user)

    async def play(
        self, kind: RoundKind, text: str, session: str, branch: str, report: Progress
    ) -> tuple[RoundResult, list[AnswerFigure], list[str]]:
        """Play a round as a message of the session; return the result, figures, names of files.

        It is withdrawn or stopped when the caller cancels.
        """
        require_text(text)  # before a session is made for it
        own, warnings = await self._own(), list[str]()
        async with own.asked(session, text) as conversation:
            branch = branch or conversation.session.branch
            session_id, message_id = conversation.session.session_id, f"mcp-{secrets.token_hex(12)}"
            message = IndexedMessage(message_id, session_id, branch, kind, text)
            sent = SilentMessage(self.all, self.user, conversation, message)
            await sent.submit()
        try:
            async for event, line in sent.events():
                if event in PROGRESS:
                    await report(redact_secrets(line))
                elif event == "round_warning":
                    warnings.append(redact_secrets(line))
        finally:
            await sent.give_up()
        in_thread = conversation.index.calls.in_thread
        return await in_thread(self._played, conversation, message, warnings)

    def _played(
        self, conversation: UserConversation, message: IndexedMessage, warnings: list[str]
    ) -> tuple[RoundResult, list[AnswerFigure], list[str]]:
        """Return result, figures and files of the round that answered a message.

        Raises:
            RequestRefused: If no round began; its text is the reason.
        """
        ended = conversation.message(message.id)
        branch = conversation.branch(message.branch)
        rounds = {round_.id: round_ for round_ in branch.rounds()}
        if ended.round_id not in rounds:
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        round_, folder = rounds[ended.round_id], branch.execution_cwd
        files = [*dict.fromkeys(round_.artifacts)]
        result = RoundResult(
            answer=redact_secrets(ended.answer),
            session=message.session,
            branch=message.branch,
            is_answered=ended.state == "finished"
            and round_.is_answered
            and not has_failed(round_.post_list[-1]),  # of a last cell
            files=[str(folder / name) if self.is_local else name for name in files],
            warnings=warnings,
        )
        figures = [*read_figures(filter(is_picture, round_.artifacts), folder)]
        return result, figures, files

    async def fork(self, session: str, name: str) -> str:
        """Fork a session, and return the name of the branch."""
        own = await self._own()
        conversation = await own.conversation(session)
        return await own.fork(conversation, conversation.session.branch, name, waits=True)

    async def remember(self, fact: str, session: str) -> str:
        """Keep a fact on a session's current branch, and return the outcome."""
        conversation = await (await self._own()).conversation(session)
        branch = conversation.session.branch
        return await conversation.change(
            branch, lambda of: of.long_memory.remember(fact), waits=True
        )

    async def add_file(self, file: AddedFile, session: str, branch: str) -> dict[str, str]:
        """Write a file into a branch's working directory after answers under way; return its place.

        Without a session a new one is made.
        """
        own, admission = await self._own(), self.all.accounts.admission
        async with own.asked(session, file["name"]) as conversation:
            branch = branch or conversation.session.branch
            with await admission.reserve(self.user, size=len(file["content"])):
                (name,) = await conversation.change(
                    branch, lambda of: add_files(of.execution_cwd, [file]), waits=True
                )
        return {"session": conversation.session.session_id, "branch": branch, "name": name}

    async def read_file(self, session: str, branch: str, path: str) -> str | bytes:
        """Return the content of a file of a branch, as text where it is UTF-8."""
        conversation = await (await self._own()).conversation(session)
        folder = conversation.branch(branch).execution_cwd

        def read() -> bytes:
            with explained(path), Folder.at(folder) as place, place.open_file(path) as file:
                return file.read(_MOST_READ_BYTES + 1)

        if len(content := await asyncio.to_thread(read)) > _MOST_READ_BYTES:
            raise RequestRefused(
                413, "too-large", f"{path} has more than {_MOST_READ_BYTES} bytes."
            )
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content

    async def files(self) -> list[tuple[str, str, str]]:
        """Return session, branch and path of the files on current branches of open sessions.

        Of each branch at most `_MOST_LISTED`.
        """
        own, found = await self._own(), list[tuple[str, str, str]]()
        for conversation in own.open_conversations:
            session, branch = conversation.session, conversation.session.branch
            with explained("."), Folder.at(conversation.branch(branch).execution_cwd) as folder:
                listed = await asyncio.to_thread(list, islice(folder.files(), _MOST_LISTED))
            found += [(session.session_id, branch, path) for path, _ in listed]
        return found

    async def search(self, query: str, session: str) -> list[dict[str, Any]]:
        """Return messages and stored memory that contain a word of the query."""
        return await (await self._own()).find(query, session)

    async def listed(self) -> list[dict[str, Any]]:
        """Return the sessions, the newest first."""
        found: list[dict[str, Any]] = [
            {
                "session": item.session_id,
                "changed_at": item.changed_at.isoformat(),
                "rounds": item.rounds,
                "first_query": item.title,
                "problem": item.problem,
            }
            for item in await (await self._own()).listed()
        ]
        masked: list[dict[str, Any]] = redact_secrets_in(found)
        return masked
