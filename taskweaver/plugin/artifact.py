"""The content of an artifact as the bytes of its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

ArtifactType = Literal["chart", "df", "file", "txt", "svg", "html", "image"]
"""What an artifact is: a chart's description, a table, or a file of that kind."""


def artifact_bytes(type: ArtifactType, val: Any) -> bytes:
    """Return the bytes of an artifact's file.

    Args:
        type: ``df`` writes a table (anything with `to_csv`) as CSV; the others write text and
            bytes as they are, a path as the content of its file, and plain data as JSON.
        val: The content.

    Raises:
        OSError: If `val` is a path that cannot be read.
        TypeError: If `val` cannot be written.
    """
    if type == "df" and hasattr(val, "to_csv"):
        return str(val.to_csv(index=False)).encode()
    match val:
        case bytes() | bytearray() | memoryview():
            return bytes(val)
        case str():
            return val.encode("utf-8", "replace")
        case Path():
            return val.read_bytes()
        case _:
            return json.dumps(val, ensure_ascii=False, indent=2).encode("utf-8", "replace")
