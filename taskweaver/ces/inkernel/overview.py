"""Overview of files from their first bytes: tables, columns, rows, and small pictures.

It runs in the kernel, since readers of these formats must not parse foreign content outside of the
sandbox. The files are read as `read_table` reads them. pandas is imported with the first file.
"""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from taskweaver.ces.inkernel.timelimit import TooSlow, time_limit
from taskweaver.tables.errors import TableError
from taskweaver.utils.data_files import TEXTS

_JPEG_QUALITY = 85
Overview = dict[str, Any]
_LIMIT_S = 5.0
_PROBLEM_CHARS = 200


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


def overviews(payload: Mapping[str, Any]) -> Overview:
    """Map each file name to its overview, or to the problem."""
    with tempfile.TemporaryDirectory() as folder:
        return {"files": {item["name"]: _overview(item, folder) for item in payload["files"]}}


def _overview(item: Mapping[str, Any], folder: str) -> Overview:
    path = Path(folder, PurePosixPath(item["name"]).name)
    try:
        with time_limit(_LIMIT_S):
            if "within" in item:
                return {"content": smaller_image(item["content"], *item["within"])}
            return {"tables": _tables(path, base64.b64decode(item["content"]), item["bytes"])}
    except TooSlow:
        return {"problem": f"it took more than {_LIMIT_S:.0f} s"}
    except TableError as error:
        return {"problem": str(error)[:_PROBLEM_CHARS]}
    except Exception as error:  # noqa: BLE001 - a file can hold anything; the reason is reported
        return {"problem": f"{type(error).__name__}: {error}"[:_PROBLEM_CHARS]}


def _tables(path: Path, content: bytes, size: int) -> list[Overview]:
    """Return the overviews of the tables of a file, of which the beginning is given.

    `path` is the place for a copy of the beginning; `size` counts the bytes of the whole file.
    """
    from taskweaver.tables.profiles.profiling import impressions

    suffix, is_whole = path.suffix.lower().lstrip("."), len(content) == size
    if not is_whole and suffix not in TEXTS:
        raise TableError("It is too large to be looked at in passing.")
    path.write_bytes(content if is_whole else _whole_lines(content, path.name))
    found = impressions(path, is_whole=is_whole)
    if suffix == "txt" and len(found[0].columns) < 2:
        raise TableError("It holds text, no table.")
    scale = 1.0 if is_whole else size / max(len(content), 1)
    return [
        {
            "name": table.part,
            "rows": round(table.rows * scale),
            "is_estimate": not is_whole,
            "columns": [list(column) for column in table.columns],
            "sample": [list(row) for row in table.first],
        }
        for table in found
    ]


def _whole_lines(content: bytes, name: str) -> bytes:
    """Return the beginning of a text file without the line that is cut."""
    from taskweaver.tables.evidence.sniffing import encoding_of

    encoding = encoding_of(content, name)
    text = content.decode(encoding, "ignore")
    return text[: text.rfind("\n") + 1].encode(encoding)
