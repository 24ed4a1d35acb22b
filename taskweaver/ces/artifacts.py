"""Artifacts as the host accepts them: what a kernel reports is a claim, and is checked."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from taskweaver.ces.common import ExecutionArtifact


def accept(
    reported: Iterable[Mapping[str, Any]], cwd: Path, limit_bytes: int
) -> tuple[list[ExecutionArtifact], list[str]]:
    """Return the reported artifacts whose file lies in the working directory.

    Args:
        reported: What the kernel listed.
        cwd: The working directory.
        limit_bytes: Largest file that is accepted.

    Returns:
        The artifacts, and a sentence for each file that is too large.
    """
    artifacts, too_large = [], []
    for item in reported:
        found = contained(cwd, str(item["file_name"]))
        if found is None:
            continue
        name, size_bytes = found
        if size_bytes > limit_bytes:
            too_large.append(_too_large(name, str(item.get("origin", "")), size_bytes, limit_bytes))
            continue
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
    return artifacts, too_large


def _too_large(name: str, origin: str, size_bytes: int, limit_bytes: int) -> str:
    by = f" of {origin}" if origin else ""
    return (
        f"{name}{by} is left out of the artifacts: it has {size_bytes / (1 << 20):,.1f} MiB, and "
        f"execution.artifact_limit_mb allows {limit_bytes / (1 << 20):g}."
    )


def contained(cwd: Path, file_name: str) -> tuple[str, int] | None:
    """Return a file's name relative to `cwd`, and its size in bytes, or None.

    None if it is elsewhere, also by a link, or is no ordinary file.
    """
    root = cwd.resolve()
    try:
        path = (root / file_name).resolve(strict=True)
        is_good = path.is_relative_to(root) and path.is_file()
        size_bytes = path.stat().st_size
    except (OSError, ValueError):
        return None
    return (str(path.relative_to(root)), size_bytes) if is_good else None
