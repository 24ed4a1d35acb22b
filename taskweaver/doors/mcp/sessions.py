"""The sessions of a user as the tools work on them, whichever way the calls come."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from taskweaver.face.figures import AnswerFigure, is_picture, read_figures
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.server.accounts import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import PROGRESS, AgentSessions, SilentMessage
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.session.branches.answering import AnsweringBranch, require_text
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

Progress = Callable[[str], Coroutine[Any, Any, None]]
RoundKind = Literal["ask", "code"]

_TITLE_CHARS = 60


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


class ToolSessions:
    """The sessions of a user, within the user's quotas. All methods raise TaskWeaverError.

    A call without a branch works on the session's current one, which no call changes.

    Attributes:
        user: The user, as of the newest request.
    """

    def __init__(self, sessions: AgentSessions, user: User, *, is_local: bool = False) -> None:
        self.user = user
        self._sessions = sessions
        self._is_local = is_local

    async def _own(self) -> UserSessions:
        return await self._sessions.of(self.user)

    async def play(
        self, kind: RoundKind, text: str, session: str, branch: str, report: Progress
    ) -> tuple[RoundResult, list[AnswerFigure]]:
        """Play a round as a message of the session; return its result and its figures.

        It is withdrawn or stopped when the caller cancels.
        """
        require_text(text)  # before a session is made for it
        own = await self._own()
        title = (text.strip().splitlines() or [""])[0][:_TITLE_CHARS]
        conversation = await (own.conversation(session) if session else own.create(title))
        branch = branch or conversation.session.branch
        await own.check_disk(self.user)
        session_id, message_id = conversation.session.session_id, f"mcp-{secrets.token_hex(12)}"
        message = IndexedMessage(message_id, session_id, branch, kind, text)
        sent, warnings = SilentMessage(self._sessions, self.user, conversation, message), []
        try:
            await sent.submit()
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
    ) -> tuple[RoundResult, list[AnswerFigure]]:
        """Return result and figures of the round that answered a message.

        Raises:
            RequestRefused: If no round began; its text is the reason.
        """
        ended = conversation.message(message.id)
        branch = conversation.branch(message.branch)
        rounds = {round_.id: round_ for round_ in branch.rounds()}
        if ended.round_id not in rounds:
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        round_, folder = rounds[ended.round_id], branch.execution_cwd
        files = dict.fromkeys(round_.artifacts)
        result = RoundResult(
            answer=redact_secrets(ended.answer),
            session=message.session,
            branch=message.branch,
            is_answered=ended.state == "finished" and _is_answered(round_),
            files=[str(folder / name) if self._is_local else name for name in files],
            warnings=warnings,
        )
        return result, [*read_figures(filter(is_picture, round_.artifacts), folder)]

    async def fork(self, session: str, name: str) -> str:
        """Fork a session; return the name of the branch."""
        return await self._change(session, lambda source: source.fork(name))

    async def remember(self, fact: str, session: str) -> str:
        """Keep a fact on a session's current branch; return the outcome."""
        return await self._change(session, lambda branch: branch.long_memory.remember(fact))

    async def _change(self, session: str, work: Callable[[AnsweringBranch], str]) -> str:
        """Change a session's current branch after the answers that are under way on it."""
        conversation = await (await self._own()).conversation(session)
        return await conversation.change(conversation.session.branch, work, waits=True)

    async def search(self, query: str, session: str) -> list[dict[str, Any]]:
        """Return messages and stored memory that contain a word of the query."""
        return await (await self._own()).find(query, session)

    async def listed(self) -> list[dict[str, Any]]:
        """Return the sessions, the newest first."""
        found: list[dict[str, Any]] = [
            {
                "session": item.id,
                "changed_at": item.changed_at.isoformat(),
                "rounds": item.rounds,
                "first_query": item.title,
                "problem": item.problem,
            }
            for item in await (await self._own()).listed()
        ]
        masked: list[dict[str, Any]] = redact_secrets_in(found)
        return masked


def _is_answered(round_: Round) -> bool:
    """Return whether a round was answered, and the code that it ends with ran to its end."""
    states = round_.post_list[-1].get_attachment(AttachmentType.execution_status)
    has_failed = any(str(state.content) == "FAILURE" for state in states)
    return round_.is_answered and not has_failed
