"""What nodes proposed, as files and commands, and what changed from one node to its child."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.phase_plan import PhasePlan

SCRIPT = "experiment.py"
"""Name of the file of a node that is one script."""
_MOST_COMPARED_CHARS = 200_000
_WITH_COMMANDS = ("download", "compile", "run")


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


def commands(artifacts: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return the commands of each phase as they are run; none of what cannot be carried out."""
    try:
        plan = PhasePlan.from_dict(artifacts)
    except PhasePlanError:
        return {phase: [] for phase in _WITH_COMMANDS}
    listed = (plan.download, plan.compile, plan.run)
    return {
        phase: [text if isinstance(text, str) else shlex.join(text) for text in filled]
        for phase, texts in zip(_WITH_COMMANDS, listed, strict=True)
        for filled in [map(plan.build.filled, texts)]
    }


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
