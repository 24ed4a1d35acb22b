"""Artifacts as the host accepts them: what a kernel reports is a claim, and is checked."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from taskweaver.ces.common import ExecutionArtifact
from taskweaver.ces.reported import text

_TYPES = ("chart", "df", "file", "txt", "svg", "html", "image")
_MAX_ARTIFACTS = 200
_MAX_NAME_CHARS = 200
_MAX_PREVIEW_CHARS = 2_000


def accept(
    reported: Iterable[Mapping[str, Any]], cwd: Path, limit_bytes: int
) -> list[ExecutionArtifact]:
    """Return the reported artifacts whose file lies in the working directory.

    Args:
        reported: What the kernel listed; the first 200 count.
        cwd: The working directory.
        limit_bytes: Largest file that is accepted.
    """
    artifacts = []
    for item in islice(reported, _MAX_ARTIFACTS):
        name = contained(cwd, text(item.get("file_name")), limit_bytes)
        if name is not None:
            artifacts.append(
                ExecutionArtifact(
                    name=_line(item.get("name")),
                    type=kind if (kind := item.get("type")) in _TYPES else "file",
                    mime_type=mimetypes.guess_type(name)[0] or "",
                    original_name=_line(item.get("original_name")),
                    file_name=name,
                    preview=text(item.get("preview"), _MAX_PREVIEW_CHARS),
                )
            )
    return artifacts


def contained(cwd: Path, file_name: str, limit_bytes: int) -> str | None:
    """Return a file's name relative to `cwd`, or None.

    None if it is elsewhere, also by a link, is no ordinary file, is too large, or has a name that
    would not stay in one line.
    """
    root = cwd.resolve()
    try:
        path = (root / file_name).resolve(strict=True)
        is_good = path.is_relative_to(root) and path.is_file()
        is_good = is_good and path.stat().st_size <= limit_bytes
    except (OSError, ValueError, RuntimeError):  # the last for links in a circle
        return None
    name = str(path.relative_to(root)) if is_good else ""
    return name if name and name.isprintable() else None


def _line(value: Any) -> str:
    return " ".join(text(value, _MAX_NAME_CHARS).split())
