"""Pictures made smaller: decoded in the kernel, as all foreign content is."""

from __future__ import annotations

import base64
import io
from typing import Any

_JPEG_QUALITY = 85


def smaller_image(content: str, most_pixels: int, most_bytes: int) -> str:
    """Return a picture within bounds, as PNG, or as JPEG where that would be too large.

    Args:
        content: The picture in base64; so is the result.
        most_pixels: Longest side of the result.
        most_bytes: Size of the result.

    Raises:
        Exception: Whatever the decoder raises for the content.
    """
    found = _smaller(io.BytesIO(base64.b64decode(content)), most_pixels, most_bytes)
    return base64.b64encode(found).decode("ascii")


def _smaller(source: Any, most_pixels: int, most_bytes: int) -> bytes:
    from PIL import Image

    with Image.open(source) as image:
        image.thumbnail((most_pixels, most_pixels))
        found = _written(image.convert("RGBA"), "PNG")
        while len(found) > most_bytes and min(image.size) > 1:
            on_white = Image.new("RGB", image.size, "white")
            whole = image.convert("RGBA")
            on_white.paste(whole, mask=whole)
            found = _written(on_white, "JPEG", quality=_JPEG_QUALITY)
            width, height = image.size
            image.thumbnail((width * 3 // 4, height * 3 // 4))
    return found


def _written(image: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
