"""Operations on the files of a session."""

from __future__ import annotations

import asyncio
import base64
import binascii
from pathlib import PurePosixPath
from typing import Any

from starlette.responses import Response

from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.routes import ONE, KernelApiOperations
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import BYTES_TYPE, Call, operation
from taskweaver.server.transfer import FileFacts, explained, list_files, remove, sent, upload_within

_FILE = f"{ONE}/files/{{path:path}}"
_MOST_BASE64_BYTES = 64 << 20
_DOWNLOAD: Any = {"answer_type": BYTES_TYPE, "problems": (404, 416)}


class FileOperations(KernelApiOperations):
    """Operations on the files of sessions."""

    @operation("GET", f"{ONE}/files", "Files of the working directory")
    async def _list_files(self, call: Call) -> models.FileList:
        files = await asyncio.to_thread(list_files, self._found(call).files)
        return models.FileList(files=files)

    @operation(
        "POST",
        f"{ONE}/files",
        "Write a file that is in the body",
        problems=(404, 507),
        body_limit=_MOST_BASE64_BYTES,
    )
    async def _write_file(self, call: Call, wanted: models.NewFile) -> models.UploadedFile:
        session = self._found(call)
        await self._sessions.check_quotas(call.user)
        name = PurePosixPath(wanted.filename.replace("\\", "/")).name
        content = _decoded(wanted)

        def write() -> None:
            with explained(wanted.filename), session.files.replacing(name) as file:
                file.write(content)

        await asyncio.to_thread(write)
        return models.UploadedFile(filename=wanted.filename, path=str(session.place.cwd / name))

    @operation(
        "PUT",
        _FILE,
        "Write a file; the body is its bytes",
        takes_bytes=True,
        problems=(404, 413, 507),
    )
    async def _upload(self, call: Call) -> FileFacts:
        session, path = self._found(call), call.path("path")
        room = await self._sessions.check_quotas(call.user)
        return await upload_within(room, session.files, path, call)

    @operation("GET", _FILE, "Bytes of a file, or a range of them", **_DOWNLOAD)
    @operation(
        "GET", f"{ONE}/artifacts/{{path:path}}", "Bytes of a file, or a range of them", **_DOWNLOAD
    )
    async def _download(self, call: Call) -> Response:
        return await sent(call, self._found(call).files, call.path("path"))

    @operation("DELETE", _FILE, "Delete a file or a folder", problems=(404,))
    async def _delete_file(self, call: Call) -> None:
        await remove(self._found(call).files, call.path("path"))


def _decoded(file: models.NewFile) -> bytes:
    if file.encoding == "text":
        return file.content.encode("utf-8", "replace")
    try:
        return base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError):
        detail = "The content is not encoded in base64."
        raise RequestRefused(422, "invalid-body", detail) from None
