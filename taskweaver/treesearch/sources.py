"""What nodes proposed, as files and commands, and what changed from one node to its child."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

SCRIPT = "script"
"""Name of the file of a node that is one script."""
_MOST_COMPARED_CHARS = 200_000


def own_files(artifacts: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the files that artifacts bring, by path; what does not look like one is left out."""
    found = _inner(artifacts)
    code = found.get("code")
    if isinstance(code, str):
        return {SCRIPT: code}
    workspace = _mapping(_mapping(found.get("coding")).get("workspace"))
    files = workspace.get("files")
    return {
        str(entry["path"]): str(entry.get("content") or "")
        for entry in (files if isinstance(files, Sequence) else ())
        if isinstance(entry, Mapping) and "path" in entry
    }


def commands(artifacts: Mapping[str, Any] | None, phase: str) -> list[str]:
    """Return the commands of a phase, as one would type them."""
    listed = _mapping(_inner(artifacts).get(phase)).get("commands")
    if isinstance(listed, str):
        return [listed]
    return [
        command if isinstance(command, str) else shlex.join(map(str, command))
        for command in (listed if isinstance(listed, Sequence) else ())
        if isinstance(command, str | list | tuple)
    ]


def changes(before: Mapping[str, str], after: Mapping[str, str], limit_chars: int) -> str:
    """Return a unified diff of two sets of files, cut at `limit_chars`; empty for no change."""
    parts: list[str] = []
    left = limit_chars
    for path in sorted({*before, *after}):
        old, new = before.get(path, ""), after.get(path, "")
        if old == new:
            continue
        part = _difference(path, old, new)
        parts.append(part if len(part) <= left else _cut(part, left))
        left -= len(part)
        if left <= 0:
            break
    return "\n".join(parts)


def _difference(path: str, old: str, new: str) -> str:
    if len(old) + len(new) > _MOST_COMPARED_CHARS:
        return f"--- {path}\n+++ {path}\n(too large to compare: {len(old):,} to {len(new):,} chars)"
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), path if old else "/dev/null", path, lineterm=""
    )
    return "\n".join(lines)


def _cut(text: str, limit_chars: int) -> str:
    kept = text[:limit_chars].rpartition("\n")[0]
    rest = text[len(kept) :].strip("\n").count("\n") + 1
    return f"{kept}\n(... {rest:,} more lines)"


def _inner(artifacts: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = _mapping(artifacts)
    return _mapping(found.get("phase_artifacts")) or found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
