"""TaskWeaver as a service for other programs: questions, code, memory, branches.

Every method blocks, and may be called from any thread; one session does one thing at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.session_manager import SessionManager
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.round import Round
from taskweaver.module.events import PostEventType, RoundEventType, TaskWeaverEvent
from taskweaver.session.errors import SessionError
from taskweaver.session.session import Session
from taskweaver.session.storage.damage import MEMORY_FILE
from taskweaver.session.storage.stored_sessions import stored_sessions
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

Report = Callable[[str], None]

_MOST_FOUND = 20


@dataclass(frozen=True)  # without slots, which the package takes for defaults
class RoundResult:
    """Result of a round.

    Attributes:
        answer: The answer, or the reason there is none.
        session: Id of the session, to continue it.
        branch: Its current branch.
        is_answered: Whether the round was answered.
        files: Files that were made, as absolute paths.
        warnings: Parts that failed while the round continued without them.
    """

    answer: str
    session: str
    branch: str
    is_answered: bool
    files: list[str]
    warnings: list[str]


class _Listener:
    """Listener that reports progress and collects errors."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.error = ""
        self.warnings: list[str] = []

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""
        if event.t is PostEventType.post_status_update:
            self._report(event.msg)
        elif event.t is RoundEventType.round_error:
            self.error = event.msg
        elif event.t is RoundEventType.round_warning:
            self.warnings.append(event.msg)


class AppService:
    """An application as others use it. The application's owner closes that."""

    def __init__(self, app: TaskWeaverApp, sessions: SessionManager | None = None) -> None:
        """Serve an application, or those sessions of it that a manager owns."""
        self._sessions = sessions or app.session_manager
        self._opening = threading.Lock()

    def open(self, session_id: str = "", branch: str = "") -> Session:
        """Return the session of an id, resumed if need be, or a new one.

        An empty id makes a new session, an empty branch takes the current one.

        Raises:
            SessionError: If the session does not exist, or another process has it open.
        """
        with self._opening:
            session = self._sessions.get_session(session_id or None)
            if branch and branch != session.branch:
                session.checkout(branch)
            return session

    @staticmethod
    def ask(session: Session, question: str, report: Report) -> RoundResult:
        """Ask a question; progress is reported through `report`.

        Raises:
            SessionError: As `Session.send_message`.
        """
        listener = _Listener(report)
        return _result(
            session, session.at(session.branch).send_message(question, listener), listener
        )

    @staticmethod
    def run_code(session: Session, code: str, report: Report) -> RoundResult:
        """Run a cell in the session's kernel; progress is reported through `report`.

        Raises:
            SessionError: As `Session.run_code`.
        """
        listener = _Listener(report)
        return _result(session, session.run_code(code, listener), listener)

    def fork(self, session_id: str, name: str = "") -> str:
        """Fork a session; return the name of the branch.

        Raises:
            SessionError: If that cannot be done.
        """
        return self.open(session_id).fork(name)

    def memory_search(self, query: str, session_id: str = "") -> list[dict[str, Any]]:
        """Return messages and stored memory that contain a word of the query.

        An empty id searches all sessions, the newest first.

        Raises:
            SessionError: If the session does not exist.
        """
        folder = self._sessions.sessions_folder
        stored = stored_sessions(folder)
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

    def sessions(self) -> list[dict[str, Any]]:
        """Return the sessions on disk, the newest first."""
        return [
            {
                "session": item.session_id,
                "changed_at": item.changed_at.isoformat(),
                "rounds": item.rounds,
                "first_query": redact_secrets(item.first_query),
                "problem": item.problem,
            }
            for item in stored_sessions(self._sessions.sessions_folder)
        ]


def _found(store: BranchedMemory, session_id: str, query: str) -> list[dict[str, Any]]:
    """Return the matches in a session's branches, once each: a branch inherits its parent's."""
    found: dict[str, str] = {}
    for name in store:
        events = store[name].find_events(query, _MOST_FOUND)
        records = store[name].search(query, _MOST_FOUND)
        texts = [event.text for event in events]
        texts += [record.text for record in records if record.match != "recency"]
        for text in texts:
            found.setdefault(text, name)
    return [{"session": session_id, "branch": name, "text": text} for text, name in found.items()]


def is_answered(round_: Round) -> bool:
    """Return whether a round was answered, and the code that it ends with ran to its end."""
    states = round_.post_list[-1].get_attachment(AttachmentType.execution_status)
    has_failed = any(str(state.content) == "FAILURE" for state in states)
    return round_.is_answered and not has_failed


def _result(session: Session, round_: Round, listener: _Listener) -> RoundResult:
    files = [str(session.execution_cwd / path) for path in round_.artifacts]
    answer = round_.post_list[-1].message if round_.state == "finished" else listener.error
    # For another program, whose model may be anywhere.
    return RoundResult(
        answer=redact_secrets(answer),
        session=session.session_id,
        branch=session.branch,
        is_answered=is_answered(round_),
        files=list(dict.fromkeys(files)),
        warnings=list(map(redact_secrets, listener.warnings)),
    )
