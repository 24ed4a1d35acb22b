"""Sizes of pictures, and smaller copies of them for pages."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import BinaryIO, cast
from urllib.parse import quote

from starlette.responses import Response

from taskweaver.ces.command.smaller_picture import (
    MOST_READ_BYTES,
    PictureNotMade,
    smaller_picture,
)
from taskweaver.ces.policy import Tier
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import too_large
from taskweaver.server.transfer import explained
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.images import ImageHeader, image_header

MOST_PIXELS = 1_600
"""Longest side of a smaller copy."""

_HEAD_BYTES = 256 << 10
_MOST_COPY_BYTES = 4 << 20
_MOST_DECODED_PIXELS = 100_000_000
_AT_ONCE = 2


def picture_header(file: BinaryIO) -> ImageHeader | None:
    """Return kind and size of a picture from its beginning; None for other files."""
    return image_header(file.read(_HEAD_BYTES))


class SmallerPictures:
    """Smaller copies of pictures; two are made at a time. It is used from one event loop."""

    def __init__(self, tier: str) -> None:
        """Have pictures decoded in a sandbox of a tier, ``none`` for none."""
        self._tier = None if tier == "none" else cast("Tier", tier)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def response(self, folder: Folder, path: str, most_pixels: int) -> Response | None:
        """Return the response with a copy; None if the picture itself is small enough.

        Raises:
            RequestRefused: If there is no such file, or it is no picture, too large, or damaged.
        """
        async with self._places:
            return await asyncio.to_thread(self._copied, folder, path, most_pixels)

    def _copied(self, folder: Folder, path: str, most_pixels: int) -> Response | None:
        with explained(path), folder.open_file(path) as file:
            header = picture_header(file)
            size = file.seek(0, 2)
            if header is None:
                raise RequestRefused(422, "no-picture", f"{path[:200]!r} is no picture.")
            if max(header.width, header.height) <= most_pixels and size <= _MOST_COPY_BYTES:
                return None
            if size > MOST_READ_BYTES:
                raise too_large(MOST_READ_BYTES)
            if header.width * header.height > _MOST_DECODED_PIXELS:
                detail = f"The picture has more than {_MOST_DECODED_PIXELS:,} pixels."
                raise RequestRefused(413, "too-large", detail)
            file.seek(0)
            try:
                content = smaller_picture(file, self._tier, most_pixels, _MOST_COPY_BYTES)
            except PictureNotMade as error:
                raise RequestRefused(422, "no-picture", str(error)) from error
        found = image_header(content)
        kind = found.kind if found else "png"
        name = f"{PurePosixPath(path).stem}.{kind}"
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        return Response(content, headers=headers, media_type=f"image/{kind}")
