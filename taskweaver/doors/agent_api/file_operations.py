"""Operations on the files and artifacts of a branch, and addresses of files that are good once."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import HTMLResponse, Response

from taskweaver.doors.agent_api import models, views
from taskweaver.doors.agent_api.routes import OF_BRANCH, ONE, PREFIX, AgentOperations
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import BYTES_TYPE, Call, missing, operation
from taskweaver.server.transfer import FileFacts, explained, list_files, remove, sent, upload
from taskweaver.utils.file_system.safe_fs import Folder

_GOOD_S = 60.0
_MOST_LINKS = 1000


@dataclass(frozen=True, slots=True)
class FileTicket:
    """A file of a working directory that may be read once.

    Attributes:
        folder: The working directory.
        path: Path in it.
        is_frame: Whether it is shown in a frame, and not downloaded.
        until: End of its time, in seconds of the monotonic clock.
    """

    folder: Path
    path: str
    is_frame: bool
    until: float


class OnceLinks:
    """Tickets by their secret names; the oldest are forgotten."""

    def __init__(self) -> None:
        self._tickets: OrderedDict[str, FileTicket] = OrderedDict()

    def add(self, folder: Path, path: str, *, is_frame: bool) -> str:
        """Return the secret name of a new ticket."""
        name = secrets.token_urlsafe(32)
        self._tickets[name] = FileTicket(folder, path, is_frame, time.monotonic() + _GOOD_S)
        while len(self._tickets) > _MOST_LINKS:
            self._tickets.popitem(last=False)
        return name

    def take(self, name: str) -> FileTicket:
        """Return a ticket, which is used up then.

        Raises:
            RequestRefused: If there is none of this name, or its time is over.
        """
        ticket = self._tickets.pop(name, None)
        if ticket is None or ticket.until < time.monotonic():
            raise missing("Link", "of this address")
        return ticket


_FILE = f"{ONE}/files/{{path:path}}"
_MOST_FRAME_BYTES = 32 << 20
_FRAME_HEADERS = {
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline';"
        " style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
    )
}
_NO_PEERS = b"<script>delete self.RTCPeerConnection; delete self.webkitRTCPeerConnection</script>"
"""Goes before a figure's own scripts: WebRTC is the one way out that its policy does not close."""


class AgentFiles(AgentOperations):
    """Operations on the files of sessions."""

    def __init__(self, sessions: AgentSessions) -> None:
        super().__init__(sessions)
        self._links = OnceLinks()

    async def _folder(self, call: Call) -> Folder:
        branch = await self._branch(call)
        with explained("."):
            return Folder.at(branch.execution_cwd)

    @operation("GET", f"{ONE}/files", "Files of a branch's working directory", query=OF_BRANCH)
    async def _list(self, call: Call) -> models.FilesOfBranch:
        with await self._folder(call) as folder:
            files = await asyncio.to_thread(list_files, folder)
        return models.FilesOfBranch(files=files)

    @operation(
        "PUT",
        _FILE,
        "Write a file; the body is its bytes",
        raw=BYTES_TYPE,
        query=OF_BRANCH,
    )
    async def _upload(self, call: Call) -> FileFacts:
        admission = self._sessions.accounts.admission
        with await self._folder(call) as folder:
            return await upload(admission, folder, call.path("path"), call)

    @operation(
        "GET",
        _FILE,
        "Bytes of a file, or a range of them",
        query=OF_BRANCH,
        answer_type=BYTES_TYPE,
    )
    async def _download(self, call: Call) -> Response:
        with await self._folder(call) as folder:
            return await sent(call, folder, call.path("path"))

    @operation("DELETE", _FILE, "Delete a file or a folder", query=OF_BRANCH)
    async def _delete(self, call: Call) -> None:
        with await self._folder(call) as folder:
            await remove(folder, call.path("path"))

    @operation(
        "POST",
        f"{ONE}/links/{{path:path}}",
        "An address of a file that is good once, for a minute",
        query=OF_BRANCH,
        status=201,
    )
    async def _link(self, call: Call, wanted: models.NewLink) -> models.FileLink:
        path, place = call.path("path"), (await self._branch(call)).execution_cwd
        with await self._folder(call) as folder, explained(path):
            await asyncio.to_thread(lambda: folder.open_file(path).close())
        is_frame = wanted.purpose == "frame"
        if is_frame and not path.lower().endswith((".html", ".htm")):
            raise RequestRefused(422, "no-frame", "Only an HTML file is shown in a frame.")
        name = self._links.add(place, path, is_frame=is_frame)
        return models.FileLink(url=f"{PREFIX}/links/{name}")

    @operation(
        "GET",
        f"{PREFIX}/links/{{name}}",
        "The file of an address that is good once",
        answer_type=BYTES_TYPE,
        is_public=True,
    )
    async def _open_link(self, call: Call) -> Response:
        ticket = self._links.take(call.path("name"))
        with explained(ticket.path), Folder.at(ticket.folder) as folder:
            if ticket.is_frame:
                return await asyncio.to_thread(_frame, folder, ticket)
            return await sent(call, folder, ticket.path)

    @operation(
        "GET", f"{ONE}/artifacts", "Files that code of a branch's rounds wrote", query=OF_BRANCH
    )
    async def _artifacts(self, call: Call) -> models.ArtifactViews:
        branch = await self._branch(call)
        with await self._folder(call) as folder:
            artifacts = await asyncio.to_thread(views.artifacts_of, branch, folder)
        return models.ArtifactViews(artifacts=artifacts)


def _frame(folder: Folder, ticket: FileTicket) -> Response:
    """Return an interactive figure for a frame from an origin of its own."""
    with folder.open_file(ticket.path) as file:
        content = file.read(_MOST_FRAME_BYTES + 1)
    if len(content) > _MOST_FRAME_BYTES:
        detail = f"A figure in a frame has at most {_MOST_FRAME_BYTES} bytes."
        raise RequestRefused(413, "too-large", detail)
    return HTMLResponse(_NO_PEERS + content, headers=_FRAME_HEADERS)
