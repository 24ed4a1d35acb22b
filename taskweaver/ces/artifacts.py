"""Artifacts as the host accepts them: what a kernel reports is a claim, and is checked."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from taskweaver.ces.common import ExecutionArtifact


def accept(
    reported: Iterable[Mapping[str, Any]], cwd: Path, limit_bytes: int
) -> list[ExecutionArtifact]:
    """Return the reported artifacts whose file lies in the working directory.

    Args:
        reported: What the kernel listed.
        cwd: The working directory.
        limit_bytes: Largest file that is accepted.
    """
    artifacts = []
    for item in reported:
        name = contained(cwd, str(item["file_name"]), limit_bytes)
        if name is not None:
            artifacts.append(
                ExecutionArtifact(
                    name=str(item["name"]),
                    type=str(item["type"]),
                    mime_type=mimetypes.guess_type(name)[0] or "",
                    original_name=str(item["original_name"]),
                    file_name=name,
                    preview=str(item["preview"]),
                )
            )
    return artifacts


def contained(cwd: Path, file_name: str, limit_bytes: int) -> str | None:
    """Return a file's name relative to `cwd`, or None.

    None if it is elsewhere, also by a link, is no ordinary file, or is too large.
    """
    root = cwd.resolve()
    try:
        path = (root / file_name).resolve(strict=True)
        is_good = path.is_relative_to(root) and path.is_file()
        is_good = is_good and path.stat().st_size <= limit_bytes
    except (OSError, ValueError):
        return None
    return str(path.relative_to(root)) if is_good else None
