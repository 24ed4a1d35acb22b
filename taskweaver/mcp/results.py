"""Results of tools, as the parts `plugin.host_function` turns into values and files."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from taskweaver.mcp.errors import ToolFailed
from taskweaver.mcp.tools import Tool
from taskweaver.utils.ids import create_id
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.text import shorten

_MAX_ERROR_CHARS = 4_000
_MAX_PARTS = 1_000
_SUFFIXES = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp",
    "audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "application/pdf": ".pdf",
    "application/json": ".json", "application/zip": ".zip", "text/csv": ".csv",
    "text/plain": ".txt",
}  # fmt: skip
"""Endings of files by the type a server states; others end in ``.bin``, opened by no program."""
_STARTS = {
    ".jpg": b"\xff\xd8\xff", ".png": b"\x89PNG\r\n\x1a\n", ".gif": b"GIF8", ".webp": b"RIFF",
}  # fmt: skip


def parts_of(result: Any, tool: Tool) -> list[dict[str, Any]]:
    """Return the parts of a tool's `mcp.CallToolResult`.

    Raises:
        ToolFailed: If the tool says that it failed, or a file in it cannot be read.
    """
    if result.is_error:
        texts = [item.text for item in result.content if item.type == "text"]
        raise ToolFailed(
            shorten(without_steering("\n".join(texts)), _MAX_ERROR_CHARS)
            or "it failed without a word."
        )
    if len(result.content) > _MAX_PARTS:
        raise ToolFailed(f"its result has {len(result.content):,} parts; ask for less.")
    parts = [_part(item, tool) for item in result.content]
    structured = result.structured_content
    if structured is None:
        return parts
    if tool.is_wrapped and isinstance(structured, dict) and list(structured) == ["result"]:
        structured = structured["result"]
    # Texts beside it say the same in words.
    return [{"value": structured}, *(part for part in parts if "file" in part)]


def _part(item: Any, tool: Tool) -> dict[str, Any]:
    match item.type:
        case "text":
            return {"value": _plain(item.text)}
        case "image" | "audio":
            return _file(item.data, item.mime_type, tool)
        case "resource" if hasattr(item.resource, "text"):
            return {"value": _plain(item.resource.text)}
        case "resource":
            return _file(item.resource.blob, item.resource.mime_type or "", tool)
        case _:
            return {"value": item.model_dump(mode="json", exclude_none=True)}


def _plain(text: str) -> Any:
    """Return the object or list a text is in JSON; else the text itself."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file(data: str, mime_type: str, tool: Tool) -> dict[str, Any]:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(f"it gave a file that cannot be read: {error}.") from error
    suffix = _SUFFIXES.get(mime_type.partition(";")[0].strip().lower(), ".bin")
    if not content.startswith(_STARTS.get(suffix, b"")):
        suffix = ".bin"
    kind = "image" if suffix in {".jpg", ".png", ".gif", ".webp"} else "file"
    return {"file": f"{tool.function}-{create_id()}{suffix}", "type": kind, "data": data}
