"""Files of a branch: the list of the working and the data folder, and the pictures of cells.

The kernel reads the files, in the sandbox; this process hands it the bytes of their beginning and
keeps the outcome until a file's size or time changes. A turn without a change costs a listing of
the two folders.

Pictures are kept as they were when the cell ended, for models that take images: cells may write the
next picture over the last one. The kernel alone decodes them; this process reads no more than
headers.
"""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from taskweaver.ces.claims import items, text
from taskweaver.ces.claims import rows as rows_of
from taskweaver.ces.common import Client
from taskweaver.ces.errors import KernelError
from taskweaver.role.files import CellPicture
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.storage.workdir import Stamp, WorkingFiles, stamp_of
from taskweaver.tables.files.file_list import ListedFile, TableOverview
from taskweaver.utils.data_files import TEXTS, is_data_file
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name, open_ordinary
from taskweaver.utils.files import leaves
from taskweaver.utils.images import IMAGE_SUFFIXES, ImageHeader, image_header

_TEXT_BYTES, _BINARY_BYTES, _REQUEST_BYTES = 256 << 10, 4 << 20, 16 << 20
_MOST_FILES, _PROBLEM_CHARS = 200, 200


class BranchFiles:
    """Files of a branch, as its roles see them."""

    def __init__(
        self,
        cwd: Path,
        config: AppSessionConfig,
        client: Client,
        working: WorkingFiles,
        *,
        may_start: bool = True,
    ) -> None:
        """Take the folders, and the files that are known from an earlier kernel.

        Unless the kernel `may_start` for that, others are listed by name and size until it runs.
        """
        self._cwd = cwd
        self._config = config
        self._client = client
        self._working = working
        self._may_start = may_start
        self._known = working.listed
        self._pictures = CellPictures(cwd, client)

    def listed(self) -> Sequence[ListedFile]:
        """Return the files; see `RoleFiles`."""
        stamps = self._stamps()
        for name, (stamp, _) in list(self._known.items()):
            if stamps.get(name) != stamp:
                del self._known[name]
        new = [name for name in stamps if name not in self._known]
        if not self._may_start and self._client.state == "not started":
            unseen = {name: (stamps[name], ListedFile(name, stamps[name][1])) for name in new}
            return [(self._known | unseen)[name][1] for name in stamps]
        self._look(new, stamps)
        return [self._known[name][1] for name in stamps]

    def keep_pictures(self, post_id: str, names: Sequence[str]) -> None:
        """Keep the pictures of a report; see `RoleFiles`."""
        self._pictures.keep(post_id, names)

    def pictures(self, post_id: str) -> Sequence[CellPicture]:
        """Return the pictures of a report; see `RoleFiles`."""
        return self._pictures.of(post_id)

    def bring(self, text: str) -> None:
        """Copy the files of the data folder that a text names; see `RoleFiles`."""
        named = self._config.finder().in_text(text)
        if named:
            self._working.bring([], named)

    def _stamps(self) -> dict[str, Stamp]:
        """Return time and size of the files by name; the copy here hides one of the data folder."""
        found = {name: stamp for name, stamp in self._all() if is_plain_name(name)}
        tables = sorted(name for name in found if is_data_file(name) and name[0] != ".")
        others = sorted(name for name in found if not is_data_file(name) and name[0] != ".")
        return {name: found[name] for name in [*tables, *others][:_MOST_FILES]}

    def _all(self) -> Iterator[tuple[str, Stamp]]:
        for path in self._config.data_files():
            with suppress(OSError):  # it was moved away meanwhile
                yield path.name, stamp_of(path.stat())
        with suppress(OSError), Folder.at(self._cwd) as folder:
            for name in folder.names():
                facts = folder.stat(name)
                if facts is not None and stat.S_ISREG(facts.st_mode):
                    yield name, stamp_of(facts)

    def _look(self, names: Sequence[str], stamps: Mapping[str, Stamp]) -> None:
        """Have the kernel look at files, and keep the outcome."""
        request, left = [], _REQUEST_BYTES
        for name in names:
            content = self._beginning(name, stamps[name], left) if is_data_file(name) else b""
            self._known[name] = stamps[name], ListedFile(name, stamps[name][1])
            if content:
                left -= len(content)
                encoded = base64.b64encode(content).decode("ascii")
                request.append({"name": name, "bytes": stamps[name][1], "content": encoded})
        if not request:
            return
        try:
            found = self._client.overview(request)
        except KernelError:
            found = {}  # the names alone are listed; the next cell reports the error
        for item in request:
            name = str(item["name"])
            self._known[name] = stamps[name], _listed(name, stamps[name][1], found.get(name))

    def _beginning(self, name: str, stamp: Stamp, left: int) -> bytes:
        """Return the bytes of a file that the kernel reads; none where it would need more."""
        size = stamp[1]
        most = min(left, _TEXT_BYTES if _suffix(name) in TEXTS else _BINARY_BYTES)
        if size > most and (_suffix(name) not in TEXTS or most < _TEXT_BYTES):
            return b""
        try:
            with Folder.at(self._cwd) as folder:
                here = folder.stat(name) is not None
                opened = folder.open_file(name) if here else self._of_data(name)
            with opened as file:
                return file.read(most)
        except OSError:
            return b""  # it is gone or cannot be read: its name alone is listed

    def _of_data(self, name: str) -> BinaryIO:
        """Open a file of the data folder, if its links may be followed now.

        Raises:
            OSError: If it cannot be opened, or is outside of the folder that links may not leave.
        """
        path, root = self._config.data_dir / name, self._config.data_root
        if root is None:
            return open_ordinary(path)
        if leaves(path, root):
            raise OSError(errno.EXDEV, "leaves the project", name)
        return open_ordinary(path.resolve(), os.O_NOFOLLOW)


def _listed(name: str, size: int, claim: Any) -> ListedFile:
    """Return a file as the kernel claims it to be; nothing that the claim lacks."""
    if not isinstance(claim, dict):
        return ListedFile(name, size)
    tables = tuple(_table(item) for item in items(claim.get("tables")) if isinstance(item, dict))
    return ListedFile(name, size, tables, text(claim.get("problem"), _PROBLEM_CHARS))


def _table(claim: Mapping[str, Any]) -> TableOverview:
    rows = claim.get("rows")
    return TableOverview(
        text(claim.get("name")),
        rows if isinstance(rows, int) and not isinstance(rows, bool) else None,
        claim.get("is_estimate") is True,
        {row[0]: row[1] for row in rows_of(claim.get("columns"), 2)},
        tuple([text(cell) for cell in items(row)] for row in items(claim.get("sample"))),
    )


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower().lstrip(".")


MOST_PIXELS, MOST_BYTES = 1_568, 1 << 20
"""Longest side and size of a picture that is sent."""

_MOST_READ_BYTES = 8 << 20
_MOST_DECODED_PIXELS = 50_000_000
_MOST_OF_A_CELL, _MOST_KEPT, _MOST_KEPT_BYTES = 4, 16, 32 << 20


class CellPictures:
    """Pictures of the newest reports of a branch."""

    def __init__(self, cwd: Path, client: Client) -> None:
        """Read files in the working folder `cwd`, and have the kernel of `client` scale them."""
        self._cwd = cwd
        self._client = client
        self._kept: dict[str, tuple[tuple[str, bytes], ...]] = {}
        self._shown: dict[str, tuple[CellPicture, ...]] = {}

    def keep(self, post_id: str, names: Sequence[str]) -> None:
        """Keep the pictures among some files, the first few of a report.

        Args:
            post_id: Id of the report.
            names: Its files.
        """
        found = [name for name in names if PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES]
        if not found:
            return
        self._kept[post_id] = tuple((name, self._read(name)) for name in found[:_MOST_OF_A_CELL])
        while len(self._kept) > 1 and self._are_too_many():
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._shown.pop(oldest, None)

    def of(self, post_id: str) -> tuple[CellPicture, ...]:
        """Return the pictures of a report, the same whenever they are asked for."""
        if post_id not in self._shown and post_id in self._kept:
            self._shown[post_id] = tuple(self._picture(*item) for item in self._kept[post_id])
            self._kept[post_id] = tuple((name, b"") for name, _ in self._kept[post_id])
        return self._shown.get(post_id, ())

    def _are_too_many(self) -> bool:
        items = [item for items in self._kept.values() for item in items]
        return len(items) > _MOST_KEPT or sum(len(data) for _, data in items) > _MOST_KEPT_BYTES

    def _read(self, name: str) -> bytes:
        """Return the content of a file; empty where it cannot be read, or is too large."""
        try:
            with Folder.at(self._cwd) as folder, folder.open_file(name) as file:
                content = file.read(_MOST_READ_BYTES + 1)
        except OSError:
            return b""
        return content if len(content) <= _MOST_READ_BYTES else b""

    def _picture(self, name: str, content: bytes) -> CellPicture:
        if not content:
            return CellPicture(name, "", f"no file of at most {_MOST_READ_BYTES >> 20} MiB")
        header = image_header(content)
        if header is None:
            return CellPicture(name, "", "not a picture")
        if header.width * header.height > _MOST_DECODED_PIXELS:
            return CellPicture(name, "", f"too large: {header.width} x {header.height} pixels")
        if not _fits(header, content):
            content = self._smaller(name, content)
            header = image_header(content)
        if header is None or not _fits(header, content):
            return CellPicture(name, "", "too large, and it cannot be made smaller")
        encoded = base64.b64encode(content).decode("ascii")
        return CellPicture(name, f"data:image/{header.kind};base64,{encoded}")

    def _smaller(self, name: str, content: bytes) -> bytes:
        """Return a picture that the kernel made smaller; empty where it cannot."""
        encoded = base64.b64encode(content).decode("ascii")
        file = {"name": name, "bytes": len(content), "content": encoded}
        try:
            found = self._client.overview([{**file, "within": [MOST_PIXELS, MOST_BYTES]}])
            return base64.b64decode(found[name]["content"])
        except (KernelError, LookupError, TypeError, ValueError):
            return b""  # the picture is left out; the next cell reports the error of a kernel


def _fits(header: ImageHeader, content: bytes) -> bool:
    return max(header.width, header.height) <= MOST_PIXELS and len(content) <= MOST_BYTES
