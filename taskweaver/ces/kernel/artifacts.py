"""Artifacts as the host accepts them: a kernel's report is a claim, and is checked."""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from taskweaver.ces.claims import text
from taskweaver.ces.common import ExecutionArtifact
from taskweaver.utils.file_system.safe_fs import Folder

_TYPES = ("chart", "df", "file", "txt", "svg", "html", "image")
_MAX_ARTIFACTS = 200
_MAX_NAME_CHARS = 200
_MAX_PREVIEW_CHARS = 2_000


def accept(
    reported: Iterable[Mapping[str, Any]], cwd: Path, limit_bytes: int
) -> tuple[list[ExecutionArtifact], list[str]]:
    """Return those of the first 200 reported artifacts that are files in the working directory.

    Returns:
        The artifacts, and a sentence for each file that is too large.
    """
    artifacts, too_large = [], []
    for item in islice(reported, _MAX_ARTIFACTS):
        found = contained(cwd, text(item.get("file_name")))
        if found is None:
            continue
        name, size_bytes = found
        if size_bytes > limit_bytes:
            too_large.append(_too_large(name, _line(item.get("origin")), size_bytes, limit_bytes))
            continue
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
    return artifacts, too_large


def _too_large(name: str, origin: str, size_bytes: int, limit_bytes: int) -> str:
    by = f" of {origin}" if origin else ""
    return (
        f"{name}{by} is left out of the artifacts: it has {size_bytes / (1 << 20):,.1f} MiB, and "
        f"execution.artifact_limit_mb allows {limit_bytes / (1 << 20):g}."
    )


def contained(cwd: Path, file_name: str) -> tuple[str, int] | None:
    """Return a file's name relative to `cwd`, and its size in bytes, or None.

    None if it is elsewhere, is reached by a link, is no ordinary file, or has a name that would not
    stay in one line.
    """
    name = os.path.relpath(os.path.normpath(cwd / file_name), cwd)
    if not name.isprintable():
        return None
    try:
        with Folder.at(cwd) as folder:
            facts = folder.stat(name)
    except OSError:
        return None
    return (name, facts.st_size) if facts and stat.S_ISREG(facts.st_mode) else None


def _line(value: Any) -> str:
    return " ".join(text(value, _MAX_NAME_CHARS).split())
