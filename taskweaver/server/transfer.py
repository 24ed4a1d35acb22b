"""Files of a working directory, up and down: streamed, in ranges, and never outside."""

from __future__ import annotations

import asyncio
import errno
import mimetypes
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from email.utils import formatdate
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import quote

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from taskweaver.server.admission import MIB, Admission, HeldShare
from taskweaver.server.errors import RequestRefused, not_found
from taskweaver.server.operations import Call
from taskweaver.utils.file_system.safe_fs import Folder

_CHUNK_BYTES = 1 << 18
_MOST_UPLOAD_BYTES = 8 << 30
_MOST_LISTED = 10_000
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class FileFacts(BaseModel):
    """A file of a working directory, by relative path."""

    path: str
    size: int
    mtime_ns: int


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn errors of the file system into refusals that name no path of the server.

    A link, a way out of the folder and a missing file look the same.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise RequestRefused(507, "disk-full", "There is no room for the file.") from error
        if error.errno in _EXHAUSTED:
            detail = "The server has no descriptor or memory left for this file."
            raise RequestRefused(503, "busy", detail, retry_after_s=1) from error
        raise not_found(f"There is no file {path[:200]!r} in the working directory.") from error
    except ValueError as error:  # a name with a null character, or one that is no text
        raise not_found(f"{path[:200]!r} is not a valid file name.") from error


def list_files(folder: Folder) -> list[FileFacts]:
    """Return the ordinary files of a working directory.

    Raises:
        RequestRefused: If there are too many.
    """
    found: list[FileFacts] = []
    for path, facts in folder.files():
        if len(found) == _MOST_LISTED:
            detail = f"The working directory has more than {_MOST_LISTED} files."
            raise RequestRefused(409, "too-many-files", detail)
        found.append(FileFacts(path=path, size=facts.st_size, mtime_ns=facts.st_mtime_ns))
    return found


def folder_bytes(folder: Path) -> int:
    """Return the disk space that the files below a folder take up."""
    if not folder.is_dir():
        return 0
    with Folder.at(folder.resolve()) as own:
        return sum(facts.st_blocks * 512 for _, facts in own.walk())


async def upload(admission: Admission, folder: Folder, path: str, call: Call) -> FileFacts:
    """Write a file from the body of a request. Only a whole file appears.

    With the header ``If-None-Match: *`` a file that is there stays as it is.

    Args:
        admission: The shares of the users.
        folder: The working directory.
        path: Path of the file in it.
        call: The request.

    Raises:
        RequestRefused: If there is no room, the path leads out of the folder, or the file is there.
    """
    is_new = call.request.headers.get("if-none-match") == "*"

    def check_free() -> None:
        if is_new and folder.stat(path) is not None:
            raise RequestRefused(409, "file-exists", f"{path[:200]} is there already.")

    with explained(path):
        parent = PurePosixPath(path).parent
        check_free()
        if str(parent) != ".":
            await asyncio.to_thread(folder.make_folders, str(parent))
        async with aclosing(_received(admission, call)) as chunks:
            with folder.replacing(path) as file:
                async for chunk in chunks:
                    await asyncio.to_thread(file.write, chunk)
                await asyncio.to_thread(file.flush)
                check_free()  # it may have come meanwhile
                facts = os.fstat(file.fileno())
    return FileFacts(path=path, size=facts.st_size, mtime_ns=facts.st_mtime_ns)


async def _received(admission: Admission, call: Call) -> AsyncGenerator[bytes]:
    """Yield the body of a request, for which disk space of the user's is held.

    Of a body without a length a part at a time is held: others, and kernels, write meanwhile.
    """
    length = call.request.headers.get("content-length", "")
    left, most = 0, min(_MOST_UPLOAD_BYTES, int(length or _MOST_UPLOAD_BYTES))
    with HeldShare() as held:
        if length:
            held.enter_context(await admission.reserve(call.user, size=most))
            left = most
        async for chunk in call.chunks(most):
            if len(chunk) > left:
                held.close()  # that part is written, and measured as a file
                room = await asyncio.to_thread(admission.room, call.user)
                part = most if room is None else min(room, max(room // 8, MIB))
                left = max(part, len(chunk))
                held.enter_context(await admission.reserve(call.user, size=left))
            left -= len(chunk)
            yield chunk


async def sent(call: Call, folder: Folder, path: str) -> Response:
    """Return the response with a file, or with the range that a request names.

    Raises:
        RequestRefused: If there is no such file, or no byte of the range.
    """
    asked = call.request.headers.get("range", "")
    return await asyncio.to_thread(_download, folder, path, asked)


async def remove(folder: Folder, path: str) -> None:
    """Delete a file or a folder.

    Raises:
        RequestRefused: If there is none.
    """

    def delete() -> None:
        with explained(path):
            folder.remove(path)

    await asyncio.to_thread(delete)


def _download(folder: Folder, path: str, range_header: str) -> Response:
    with explained(path):
        file = folder.open_file(path)
    try:
        facts = os.fstat(file.fileno())
        first, last = _range(range_header, facts.st_size)
    except BaseException:
        file.close()
        raise
    is_part = (first, last) != (0, facts.st_size - 1)
    name = PurePosixPath(path).name
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Length": str(last - first + 1),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Last-Modified": formatdate(facts.st_mtime, usegmt=True),
        "ETag": f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"',
    }
    if is_part:
        headers["Content-Range"] = f"bytes {first}-{last}/{facts.st_size}"
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    body = _chunks(file, first, last - first + 1)
    return StreamingResponse(body, 206 if is_part else 200, headers, media_type)


def _range(header: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte that a header asks for. A form that is not known, all.

    Raises:
        RequestRefused: If the file has none of the bytes.
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or match[1] == match[2] == "":
        return 0, size - 1
    if not match[1]:
        first, last = max(0, size - int(match[2])), size - 1
    else:
        first, last = int(match[1]), min(int(match[2] or size), size - 1)
    if first > last:
        raise RequestRefused(416, "range", f"The file has {size} bytes.")
    return first, last


async def _chunks(file: BinaryIO, first: int, count: int) -> AsyncIterator[bytes]:
    try:
        file.seek(first)
        while count:
            chunk = await asyncio.to_thread(file.read, min(count, _CHUNK_BYTES))
            if not chunk:
                raise OSError(errno.EIO, "the file became shorter while it was sent")
            count -= len(chunk)
            yield chunk
    finally:
        file.close()
