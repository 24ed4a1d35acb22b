"""Pictures that cells made, as they were when the cell ended, for models that take images.

Cells may write the next picture over the last one, so the content is kept with the report. It is
decoded by the kernel alone, in the sandbox: this process reads no more than headers.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from taskweaver.ces.common import Client
from taskweaver.ces.errors import KernelError
from taskweaver.role.files import CellPicture
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.images import IMAGE_SUFFIXES, image_header

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
        if not _fits(content):
            content = self._smaller(name, content)
        header = image_header(content)
        if header is None or not _fits(content):
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


def _fits(content: bytes) -> bool:
    header = image_header(content)
    is_small = header is not None and max(header.width, header.height) <= MOST_PIXELS
    return is_small and len(content) <= MOST_BYTES
