"""Sessions of the protocol: branches of sessions, by ids that hold after a restart.

The id of a branch is ``SESSION:BRANCH``, that of a session's current branch its own id.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp.helpers import ContentBlock
from acp.schema import SessionInfo

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.acp.requests import INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, refused
from taskweaver.doors.acp.updates import made_files, shown
from taskweaver.mcp.config import ServerConfig
from taskweaver.module.confirmation import AnsweredElsewhere, Confirmation
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.errors import SessionError, SessionInUse
from taskweaver.session.session import Session
from taskweaver.session.storage.stored_sessions import StoredSession, stored_sessions
from taskweaver.utils.files import write_json
from taskweaver.utils.text import title_line

_RECORD = "acp.json"


@dataclass(slots=True)
class RunningPrompt:
    """A prompt that is being answered.

    Attributes:
        is_cancelled: Whether the client cancelled it.
        waiting: Ids of its requests for confirmation that are open.
    """

    is_cancelled: bool = False
    waiting: set[str] = field(default_factory=set)


@dataclass(slots=True)
class OpenSession:
    """A session of the protocol that is open.

    Attributes:
        id: Its id.
        session: The session that it is a branch of.
        branch: The branch.
        folder: Folder that the client works in.
        confirmations: The requests for confirmation of the whole session.
        running: The prompt that is being answered.
    """

    id: str
    session: Session
    branch: SessionBranch
    folder: Path
    confirmations: AnsweredElsewhere
    running: RunningPrompt | None = None

    def files(self, branch: str, names: Sequence[str]) -> list[ContentBlock]:
        """Return files of a branch of the session, as blocks. An empty name means its own."""
        chosen = self.session.at(branch) if branch else self.branch
        return made_files(names, chosen.execution_cwd)

    def cancel(self) -> None:
        """End the round that is under way, if there is one."""
        if self.running is None:
            return
        self.running.is_cancelled = True
        self.branch.interrupt()
        for request_id in self.running.waiting:
            self.confirmations.provide_confirmation(request_id, Confirmation.no)


class AcpSessions:
    """The sessions of a client. The application's owner closes the sessions."""

    def __init__(self, app: TaskWeaverApp) -> None:
        self._manager = app.session_manager
        self._open: dict[str, OpenSession] = {}
        self._opening = asyncio.Lock()

    def find(self, session_id: str) -> OpenSession:
        """Return an open session.

        Raises:
            RequestError: If none of this id is open.
        """
        found = self._open.get(session_id)
        if found is None:
            detail = f"The session {session_id[:128]!r} is not open: load or resume it first."
            raise refused(NOT_FOUND, detail)
        return found

    async def new(self, cwd: str, servers: Sequence[ServerConfig]) -> OpenSession:
        """Make a session for a folder of the client's, with the client's MCP servers.

        Raises:
            RequestError: If the folder cannot be one.
            SessionError: If it cannot be made.
        """
        folder = _folder(cwd)
        async with self._opening:
            session = await asyncio.to_thread(self._manager.get_session, None, servers)
            _write(session.workspace, folder, [])
            return self._added(session.session_id, session, session.branch, folder)

    async def open(self, session_id: str, cwd: str, servers: Sequence[ServerConfig]) -> OpenSession:
        """Open a session that is on disk, with MCP servers, or return the open session.

        Raises:
            RequestError: If there is none, or the folder cannot be one.
            SessionError: If it cannot be opened.
        """
        folder = _folder(cwd)
        async with self._opening:
            found = self._open.get(session_id)
            if found is not None:
                found.folder = folder
                return found
            own_id, _, name = session_id.partition(":")
            try:
                session = await asyncio.to_thread(self._manager.get_session, own_id, servers)
                return self._added(session_id, session, name or session.branch, folder)
            except SessionInUse:
                raise
            except SessionError as error:
                raise refused(NOT_FOUND, str(error)) from error

    async def fork(self, session_id: str, cwd: str, servers: Sequence[ServerConfig]) -> OpenSession:
        """Fork a session with variables and files; a fork has the session's MCP servers.

        Raises:
            RequestError: If there is none, or it is at work.
            SessionError: If it cannot be forked.
        """
        source = await self.open(session_id, cwd, servers)
        if source.running is not None:
            raise refused(INVALID_REQUEST, "A prompt is being answered there: cancel it first.")
        async with self._opening:
            name = await asyncio.to_thread(source.branch.fork)
            session = source.session
            record = _read(session.workspace)
            forks = [*record.get("forks", []), name]
            _write(session.workspace, Path(record.get("cwd", source.folder)), forks)
            made_id = f"{session.session_id}:{name}"
            return self._added(made_id, session, name, source.folder)

    async def close(self, session_id: str) -> None:
        """Close a session: end the round, and the processes when no branch is open any more.

        Raises:
            RequestError: If none of this id is open.
        """
        found = self.find(session_id)
        found.cancel()
        async with self._opening:
            self._open.pop(session_id, None)
            own_id = found.session.session_id
            if not any(other.session is found.session for other in self._open.values()):
                await asyncio.to_thread(self._manager.stop_session, own_id)

    async def listed(self, cwd: str | None) -> list[SessionInfo]:
        """Return the sessions of a folder of the client's, or all, the newest first."""
        async with self._opening:  # to look whether one is locked takes its lock for a moment
            stored = await asyncio.to_thread(stored_sessions, self._manager.sessions_folder)
            found = [info for item in stored for info in _infos(item)]
        return [info for info in found if cwd in {None, info.cwd}]

    def _added(self, session_id: str, session: Session, name: str, folder: Path) -> OpenSession:
        branch, emitter = session.at(name), session.event_emitter
        handler = emitter.confirmation_handler
        if not isinstance(handler, AnsweredElsewhere):
            handler = emitter.confirmation_handler = AnsweredElsewhere()
        self._open[session_id] = OpenSession(session_id, session, branch, folder, handler)
        return self._open[session_id]


def _folder(cwd: str) -> Path:
    folder = Path(cwd)
    if not folder.is_absolute():
        raise refused(INVALID_PARAMS, f"The folder {cwd!r} is not an absolute path.")
    if not folder.is_dir():
        raise refused(INVALID_PARAMS, f"The folder {cwd} does not exist.")
    return folder


def _write(workspace: Path, folder: Path, forks: Sequence[str]) -> None:
    write_json(workspace / _RECORD, {"cwd": str(folder), "forks": list(forks)})


def _read(workspace: Path) -> dict[str, Any]:
    """Return the record of a session, or nothing for a session that was made elsewhere."""
    try:
        record = json.loads((workspace / _RECORD).read_bytes())
    except (OSError, ValueError):  # there is none, or it is no record
        return {}
    is_record = isinstance(record, dict) and isinstance(record.get("cwd"), str)
    return record if is_record and isinstance(record.get("forks"), list) else {}


def _infos(item: StoredSession) -> list[SessionInfo]:
    """Return a session on disk and its forks, as clients list them. Nothing of a damaged one."""
    if item.problem:
        return []
    record = _read(item.folder)
    title = shown(title_line(item.first_query) or item.session_id)
    forks = [name for name in record.get("forks", []) if isinstance(name, str)]
    names = {item.session_id: title}
    names |= {f"{item.session_id}:{name}": f"{title} ({name})" for name in forks}
    return [
        SessionInfo(
            session_id=session_id,
            cwd=record.get("cwd", str(item.folder)),
            title=named,
            updated_at=item.changed_at.isoformat(),
        )
        for session_id, named in names.items()
    ]
