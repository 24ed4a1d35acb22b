"""Operations on the files and artifacts of a branch's working directory."""

from __future__ import annotations

import asyncio
from functools import partial

from pydantic import BaseModel
from starlette.responses import HTMLResponse, Response

from taskweaver.doors.agent_api import models, views
from taskweaver.doors.agent_api.links import FileTicket, OnceLinks
from taskweaver.doors.agent_api.routes import (
    OF_BRANCH,
    ONE,
    PREFIX,
    found,
    working_folder,
)
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import BYTES_TYPE, ApiOperation, Call
from taskweaver.server.transfer import FileFacts, download, explained, list_files, upload
from taskweaver.utils.file_system.safe_fs import Folder

_MOST_UPLOAD_BYTES = 8 << 30
_MOST_FRAME_BYTES = 32 << 20
_FRAME_HEADERS = {
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline';"
        " style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
    )
}
_NO_PEERS = b"<script>delete self.RTCPeerConnection; delete self.webkitRTCPeerConnection</script>"
"""Goes before a figure's own scripts: WebRTC is the one way out that its policy does not close."""


class AgentFiles:
    """Operations on the files of sessions.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._links = OnceLinks()
        self.operations = [*self._of_files(), *self._of_reads()]

    def _of_files(self) -> list[ApiOperation]:
        path = f"{ONE}/files/{{path:path}}"
        return [
            ApiOperation(
                "GET",
                f"{ONE}/files",
                self._list,
                "Files of a branch's working directory",
                query=OF_BRANCH,
                answer=models.FilesOfBranch,
            ),
            ApiOperation(
                "PUT",
                path,
                self._upload,
                "Write a file; the body is its bytes",
                takes_bytes=True,
                query=OF_BRANCH,
                answer=FileFacts,
                problems=(404, 409, 413, 507),
            ),
            ApiOperation(
                "GET",
                path,
                self._download,
                "Bytes of a file, or a range of them",
                query=OF_BRANCH,
                answer_type=BYTES_TYPE,
                problems=(404, 409, 416),
            ),
            ApiOperation(
                "DELETE",
                path,
                self._delete,
                "Delete a file or a folder",
                query=OF_BRANCH,
                status=204,
            ),
        ]

    def _of_reads(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "POST",
                f"{ONE}/links/{{path:path}}",
                self._link,
                "An address of a file that is good once, for a minute",
                body=models.NewLink,
                query=OF_BRANCH,
                answer=models.FileLink,
                status=201,
            ),
            ApiOperation(
                "GET",
                f"{PREFIX}/links/{{name}}",
                self._open_link,
                "The file of an address that is good once",
                answer_type=BYTES_TYPE,
                problems=(404, 416),
                is_public=True,
            ),
            ApiOperation(
                "GET",
                f"{ONE}/artifacts",
                self._artifacts,
                "Files that code of a branch's rounds wrote",
                query=OF_BRANCH,
                answer=models.ArtifactViews,
            ),
        ]

    async def _folder(self, call: Call) -> Folder:
        conversation = await found(self._sessions, call)
        with explained("."):
            return working_folder(conversation, call.query("branch", "main"))

    async def _list(self, call: Call) -> BaseModel:
        with await self._folder(call) as folder:
            files = await asyncio.to_thread(list_files, folder)
        return models.FilesOfBranch(files=files)

    async def _upload(self, call: Call) -> BaseModel:
        room = await (await self._sessions.of(call.user)).check_disk(call.user)
        most = _MOST_UPLOAD_BYTES if room is None else min(room, _MOST_UPLOAD_BYTES)
        with await self._folder(call) as folder:
            return await upload(folder, call.path("path"), call.chunks(most))

    async def _download(self, call: Call) -> Response:
        asked, path = call.request.headers.get("range", ""), call.path("path")
        with await self._folder(call) as folder:
            return await asyncio.to_thread(partial(download, folder, path, asked))

    async def _delete(self, call: Call) -> Response:
        path = call.path("path")

        def delete(folder: Folder) -> None:
            with explained(path):
                folder.remove(path)

        with await self._folder(call) as folder:
            await asyncio.to_thread(delete, folder)
        return Response(status_code=204)

    async def _link(self, call: Call) -> BaseModel:
        path, conversation = call.path("path"), await found(self._sessions, call)
        with await self._folder(call) as folder, explained(path):
            await asyncio.to_thread(lambda: folder.open_file(path).close())
        place = conversation.branch(call.query("branch", "main")).execution_cwd
        is_frame = call.read(models.NewLink).purpose == "frame"
        if is_frame and not path.lower().endswith((".html", ".htm")):
            raise RequestRefused(422, "no-frame", "Only an HTML file is shown in a frame.")
        name = self._links.add(place, path, is_frame=is_frame)
        return models.FileLink(url=f"{PREFIX}/links/{name}")

    async def _open_link(self, call: Call) -> Response:
        ticket = self._links.take(call.path("name"))
        asked = call.request.headers.get("range", "")
        with explained(ticket.path), Folder.at(ticket.folder) as folder:
            if ticket.is_frame:
                return await asyncio.to_thread(_frame, folder, ticket)
            return await asyncio.to_thread(partial(download, folder, ticket.path, asked))

    async def _artifacts(self, call: Call) -> BaseModel:
        branch = (await found(self._sessions, call)).branch(call.query("branch", "main"))
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
