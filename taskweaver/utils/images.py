"""Kind and size of images, from the bytes of their headers: nothing is decoded."""

from __future__ import annotations

import struct
from dataclasses import dataclass

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_STARTS = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"GIF87a": "gif",
    b"GIF89a": "gif",
}
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
_MOST_SEGMENTS = 1_000


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """Kind of an image, as in the MIME type, and the size in pixels."""

    kind: str
    width: int
    height: int


def image_kind(data: bytes) -> str | None:
    """Return a file's kind of image from the content, as in the MIME type, or None for no image."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), None)


def image_header(data: bytes) -> ImageHeader | None:
    """Return kind and size of an image, or None for no image, or an image without a size."""
    kind = image_kind(data)
    try:
        match kind:
            case "png":
                width, height = struct.unpack_from(">II", data, 16)
            case "gif":
                width, height = struct.unpack_from("<HH", data, 6)
            case "jpeg":
                width, height = _jpeg_size(data)
            case "webp":
                width, height = _webp_size(data)
            case _:
                return None
    except (struct.error, ValueError):
        return None
    return ImageHeader(kind, width, height) if width and height else None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return the size in the first frame header of a JPEG.

    Raises:
        ValueError: If there is none.
        struct.error: If the data ends before it.
    """
    at = 2
    for _ in range(_MOST_SEGMENTS):
        mark, code, length = struct.unpack_from(">BBH", data, at)
        if mark != 0xFF:
            break
        if 0xC0 <= code <= 0xCF and code not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    raise ValueError("no frame header")


def _webp_size(data: bytes) -> tuple[int, int]:
    """Return the size in the first chunk of a WebP image.

    Raises:
        ValueError: If the chunk is of another kind.
        struct.error: If the data ends before it.
    """
    match data[12:16]:
        case b"VP8X":
            low_w, high_w, low_h, high_h = struct.unpack_from("<HBHB", data, 24)
            return 1 + low_w + (high_w << 16), 1 + low_h + (high_h << 16)
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no image chunk")
