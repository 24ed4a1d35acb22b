"""Operations on the files of a session."""

from __future__ import annotations

import asyncio
import base64
import binascii
from functools import partial
from pathlib import PurePosixPath

from pydantic import BaseModel
from starlette.responses import Response

from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.routes import ONE, found
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import BYTES_TYPE, ApiOperation, Call
from taskweaver.server.transfer import FileFacts, download, explained, list_files, upload

_MOST_UPLOAD_BYTES = 8 << 30
_MOST_BASE64_BYTES = 64 << 20


class FileOperations:
    """Operations on the files of sessions.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: KernelSessions) -> None:
        self._sessions = sessions
        path = f"{ONE}/files/{{path:path}}"
        self.operations = [
            ApiOperation(
                "GET",
                f"{ONE}/files",
                self._list_files,
                "Files of the working directory",
                answer=models.FileList,
            ),
            ApiOperation(
                "POST",
                f"{ONE}/files",
                self._write_file,
                "Write a file that is in the body",
                body=models.NewFile,
                answer=models.UploadedFile,
                problems=(404, 507),
                body_limit=_MOST_BASE64_BYTES,
            ),
            ApiOperation(
                "PUT",
                path,
                self._upload,
                "Write a file; the body is its bytes",
                takes_bytes=True,
                answer=FileFacts,
                problems=(404, 413, 507),
            ),
            *(
                ApiOperation(
                    "GET",
                    f"{ONE}/{name}/{{path:path}}",
                    self._download,
                    "Bytes of a file, or a range of them",
                    answer_type=BYTES_TYPE,
                    problems=(404, 416),
                )
                for name in ("files", "artifacts")
            ),
            ApiOperation(
                "DELETE",
                path,
                self._delete_file,
                "Delete a file or a folder",
                status=204,
                problems=(404,),
            ),
        ]

    async def _list_files(self, call: Call) -> BaseModel:
        files = await asyncio.to_thread(list_files, found(self._sessions, call).files)
        return models.FileList(files=files)

    async def _write_file(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.NewFile), found(self._sessions, call)
        await self._sessions.check_quotas(call.user)
        name = PurePosixPath(wanted.filename.replace("\\", "/")).name
        content = _decoded(wanted)

        def write() -> None:
            with explained(wanted.filename), session.files.replacing(name) as file:
                file.write(content)

        await asyncio.to_thread(write)
        return models.UploadedFile(filename=wanted.filename, path=str(session.place.cwd / name))

    async def _upload(self, call: Call) -> BaseModel:
        session, path = found(self._sessions, call), call.path("path")
        room = await self._sessions.check_quotas(call.user)
        most = _MOST_UPLOAD_BYTES if room is None else min(room, _MOST_UPLOAD_BYTES)
        return await upload(session.files, path, call.chunks(most))

    async def _download(self, call: Call) -> Response:
        session, path = found(self._sessions, call), call.path("path")
        asked = call.request.headers.get("range", "")
        return await asyncio.to_thread(partial(download, session.files, path, asked))

    async def _delete_file(self, call: Call) -> Response:
        session, path = found(self._sessions, call), call.path("path")

        def delete() -> None:
            with explained(path):
                session.files.remove(path)

        await asyncio.to_thread(delete)
        return Response(status_code=204)


def _decoded(file: models.NewFile) -> bytes:
    if file.encoding == "text":
        return file.content.encode("utf-8", "replace")
    try:
        return base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError):
        detail = "The content is not encoded in base64."
        raise RequestRefused(422, "invalid-body", detail) from None
