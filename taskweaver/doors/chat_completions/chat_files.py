"""Files of chats: uploaded once and named by their ids, or part of a message."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.responses import Response

from taskweaver.server.admission import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused, invalid_body
from taskweaver.server.operations import (
    BYTES_TYPE,
    FORM_TYPE,
    Call,
    missing,
    operation,
    too_large,
)
from taskweaver.server.transfer import explained, sent
from taskweaver.session.storage.workdir import AddedFile, WorkingFiles
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name

_FOLDER = "uploads"
_MOST_BYTES, _MOST_FILES, _MOST_PARTS = 512 << 20, 10_000, 100
_FILES = "/v1/files"


class FilePart(BaseModel):
    """A file in a message: its id, or its content in base64, as such or in a data URL."""

    file_id: str = ""
    file_data: str = ""
    filename: str = ""


class KeptFile(BaseModel):
    """An uploaded file."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: str = "user_data"
    status: str = "processed"


class KeptFiles(BaseModel):
    """The uploaded files of a user."""

    object: Literal["list"] = "list"
    data: list[KeptFile]
    has_more: bool = False


class DeletedFile(BaseModel):
    """The answer to the deletion of a file."""

    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class ChatFiles:
    """Uploaded files, each in a folder of its own below the folder of its user.

    The id of a file is the name of its folder. Files count toward the user's share of the disk.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions

    async def _folder(self, user: User) -> Path:
        folder = (await self._sessions.of(user)).folder.resolve() / _FOLDER
        await asyncio.to_thread(folder.mkdir, 0o700, exist_ok=True)
        return folder

    @operation("POST", _FILES, "Keep a file, for chats to name", raw=FORM_TYPE)
    async def _upload(self, call: Call) -> KeptFile:
        headers = call.request.headers
        length = headers.get("content-length", "")
        if not length.isdigit() or "transfer-encoding" in headers:  # which goes before the length
            raise RequestRefused(411, "length-required", "The request needs a Content-Length.")
        if int(length) > _MOST_BYTES:
            raise too_large(_MOST_BYTES)
        with await self._sessions.accounts.admission.reserve(call.user, size=int(length)):
            async with call.request.form(max_files=1) as form:
                file = form.get("file")
                if not isinstance(file, UploadFile):
                    detail = "The form has no file in its field `file`."
                    raise invalid_body(detail)
                return await asyncio.to_thread(_keep, await self._folder(call.user), file)

    @operation("GET", _FILES, "The uploaded files")
    async def _list(self, call: Call) -> KeptFiles:
        folder = await self._folder(call.user)
        return KeptFiles(data=await asyncio.to_thread(_all, folder))

    @operation("GET", f"{_FILES}/{{file_id}}", "An uploaded file")
    async def _show(self, call: Call) -> KeptFile:
        return await asyncio.to_thread(_found, await self._folder(call.user), call.path("file_id"))

    @operation(
        "GET",
        f"{_FILES}/{{file_id}}/content",
        "Bytes of an uploaded file",
        answer_type=BYTES_TYPE,
    )
    async def _content(self, call: Call) -> Response:
        folder, found = await self._folder(call.user), await self._show(call)
        with explained(found.filename), Folder.at(folder / found.id) as place:
            return await sent(call, place, found.filename)

    @operation("DELETE", f"{_FILES}/{{file_id}}", "Delete an uploaded file")
    async def _delete(self, call: Call) -> DeletedFile:
        folder, found = await self._folder(call.user), await self._show(call)
        with Folder.at(folder) as place:
            await asyncio.to_thread(place.remove, found.id)
        return DeletedFile(id=found.id)

    async def bring(
        self, user: User, conversation: UserConversation, branch: str, parts: Sequence[FilePart]
    ) -> list[str]:
        """Copy the files of messages into a branch's working directory; return notes for roles.

        Raises:
            RequestRefused: If a file is missing, or the user's share of the disk is used up.
            SessionError: If a file cannot be written.
        """
        if not parts:
            return []
        if len(parts) > _MOST_PARTS:
            detail = f"At most {_MOST_PARTS} files come with a chat: pack them into an archive."
            raise invalid_body(detail)
        folder = await self._folder(user)
        given = await asyncio.to_thread(lambda: [_given(folder, part) for part in parts])
        size = sum(size for size, _ in given)
        working = WorkingFiles(conversation.branch(branch).execution_cwd)
        with await self._sessions.accounts.admission.reserve(user, size=size):
            return await asyncio.to_thread(working.bring, [file for _, file in given], ())


def _keep(folder: Path, file: UploadFile) -> KeptFile:
    name = PurePosixPath((file.filename or "").replace("\\", "/")).name
    if not is_plain_name(name):
        raise invalid_body(f"{name[:200]!r} is not a valid file name.")
    id_ = f"file-{secrets.token_hex(12)}"
    draft = f".{id_}"  # incomplete files are not listed
    with explained(name), Folder.at(folder) as place:
        if len(place.names()) >= _MOST_FILES:
            raise RequestRefused(
                409, "too-many-files", f"{_MOST_FILES:,} files are kept: delete some."
            )
        place.make_folder(draft)
        try:
            with place.create_file(f"{draft}/{name}") as target:
                shutil.copyfileobj(file.file, target)
            place.move(draft, place, id_)
        except BaseException:
            place.remove(draft)
            raise
    return _found(folder, id_)


def _all(folder: Path) -> list[KeptFile]:
    """Return the files, the newest first."""
    with Folder.at(folder) as place:
        found = [one for id_ in place.names() for one in _kept(place, id_)]
    return [file for _, file in sorted(found, key=lambda one: -one[0])]


def _kept(place: Folder, id_: str) -> Iterator[tuple[int, KeptFile]]:
    """Yield the time and the facts of a file, if it is there and complete."""
    if id_.startswith("."):
        return
    with suppress(OSError, ValueError), place.folder(id_) as own:
        for name, facts in own.files():
            at = int(facts.st_mtime)
            file = KeptFile(id=id_, bytes=facts.st_size, created_at=at, filename=name)
            yield facts.st_mtime_ns, file


def _found(folder: Path, file_id: str) -> KeptFile:
    with Folder.at(folder) as place:
        for _, file in _kept(place, file_id):
            return file
    raise missing("File", file_id[:64])


def _given(folder: Path, part: FilePart) -> tuple[int, AddedFile]:
    """Return the size of a file of a message, and the file."""
    if part.file_id:
        kept = _found(folder, part.file_id)
        name = part.filename or kept.filename
        return kept.bytes, AddedFile(name=name, path=folder / kept.id / kept.filename)
    name = part.filename or "file"
    try:
        content = base64.b64decode(part.file_data.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        detail = f"The content of the file {name[:200]!r} (file_data) is not valid base64."
        raise invalid_body(detail) from None
    return len(content), AddedFile(name=name, content=content)
