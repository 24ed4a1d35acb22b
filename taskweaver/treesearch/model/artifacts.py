"""Artifacts of a node: the phase plan or the script it proposed, with their form as JSON."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.phase_plan import PhasePlan

SCRIPT = "experiment.py"
"""Name of the file of a node that is one script."""
_MOST_COMPARED_CHARS = 200_000
_WITH_COMMANDS = ("download", "compile", "run")


@dataclass(frozen=True, slots=True)
class ScriptArtifact:
    """One script, run in a kernel."""

    code: str

    def to_dict(self) -> dict[str, Any]:
        """Return the script as plain data."""
        return {"code": self.code}


@dataclass(frozen=True, slots=True)
class UnreadArtifacts:
    """Artifacts of an older run that are neither a script nor a plan that can be executed.

    Attributes:
        data: The artifacts, as the journal holds them.
        problem: Reason why they are no plan.
    """

    data: Mapping[str, Any]
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data."""
        return dict(self.data)


Artifacts = PhasePlan | ScriptArtifact | UnreadArtifacts
"""What a node proposed."""


def read_artifacts(data: object) -> Artifacts | None:
    """Return artifacts from their form in a journal, ``phase_artifacts`` or ``{"code": ...}``."""
    if not isinstance(data, Mapping):
        return None
    code = data.get("code")
    if isinstance(code, str):
        return ScriptArtifact(code)
    try:
        return PhasePlan.from_dict(data, is_measured="run" in data)
    except PhasePlanError as error:
        return UnreadArtifacts(data, str(error))


def artifact_files(artifacts: Artifacts | None) -> dict[str, str]:
    """Return the text of the files that artifacts bring, by path."""
    match artifacts:
        case ScriptArtifact():
            return {SCRIPT: artifacts.code}
        case PhasePlan():
            return {file.path: file.content for file in artifacts.workspace.files}
        case UnreadArtifacts():
            return _listed_files(artifacts.data)
    return {}


def artifact_commands(artifacts: Artifacts | None) -> dict[str, list[str]]:
    """Return the commands of each phase as they are run, none of artifacts that are no plan."""
    if not isinstance(artifacts, PhasePlan):
        return {phase: [] for phase in _WITH_COMMANDS}
    listed = (artifacts.download, artifacts.compile, artifacts.run)
    return {
        phase: [text if isinstance(text, str) else shlex.join(text) for text in filled]
        for phase, texts in zip(_WITH_COMMANDS, listed, strict=True)
        for filled in [map(artifacts.build.filled, texts)]
    }


def program_text(artifacts: Artifacts | None) -> str:
    """Return files and commands as one text, each file below a line with its path."""
    parts = [f"# {path}\n{text}" for path, text in artifact_files(artifacts).items()]
    for phase, texts in artifact_commands(artifacts).items():
        parts += [f"# {phase}\n" + "\n".join(texts)] if texts else []
    return "\n\n".join(parts)


def changes(before: Mapping[str, str], after: Mapping[str, str], limit_chars: int) -> str:
    """Return a unified diff of two sets of files, cut at `limit_chars`, empty for no change."""
    parts: list[str] = []
    left = limit_chars
    for path in sorted({*before, *after}):
        old, new = before.get(path, ""), after.get(path, "")
        if old == new:
            continue
        part = _difference(path, old, new)
        parts.append(first_lines(part, left))
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


def first_lines(text: str, limit_chars: int) -> str:
    """Return a text, or its first whole lines and the number of the others where it is longer."""
    if len(text) <= limit_chars:
        return text
    kept = text[:limit_chars].rpartition("\n")[0]
    rest = text[len(kept) :].strip("\n").count("\n") + 1
    return f"{kept}\n(... {rest:,} more lines)"


def _listed_files(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a plan that could not be read, by path. Other entries are left out."""
    plan = _mapping(data.get("phase_artifacts")) or data
    files = _mapping(_mapping(plan.get("coding")).get("workspace")).get("files")
    return {
        str(entry["path"]): str(entry.get("content") or "")
        for entry in (files if isinstance(files, Sequence) else ())
        if isinstance(entry, Mapping) and "path" in entry
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
