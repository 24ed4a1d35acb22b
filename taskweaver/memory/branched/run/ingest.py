"""Import of the sources of a run into the memory, text files and refusals included.

No model takes part. Each source is known by its SHA-256: the same one is ingested once, a changed
one updates its rows. The hash is written last, so an interrupted ingestion is done again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.values import file_path, paths

IDEA_TAG, ROOT_IDEA_TAG, PHASE0_TAG = "IDEA_MD", "ROOT_IDEA", "PHASE0_INTERNAL"
ENVIRONMENT_TAG = "ENVIRONMENT"
NOT_PROVIDED = "(not provided)"
_IDEA_HASH, _PHASE0_HASH, _ENVIRONMENT_HASH = "idea_md_hash", "phase0_hash", "environment_hash"
_PASSING_FACTS = frozenset({"load", "memory_copy"})
"""Names of facts that differ from look to look: a memory that keeps them would soon be untrue."""
_ARTIFACT_CHARS = 5000
_HEADING = re.compile(r"^##\s+(.+?)\s*#*\s*$", re.MULTILINE)
_BULLETS: Mapping[str, tuple[str, ...]] = {
    "Purpose": ("abstract", "task goal"),
    "Hypothesis": ("short hypothesis", "hypothesis"),
    "Method/Variables": ("experiments", "code"),
    "Evaluation": ("task evaluation", "evaluation"),
    "Known failures/mitigations": ("risk factors and limitations",),
}


def ingest_idea_md(
    branch: BranchHandle, idea_path: str | Path, *, node_uid: str | None = None
) -> bool:
    """Keep an idea, with a summary in core memory, and return whether the idea is new.

    Of a run, the branch is its root, from which the whole run inherits. The node that the idea is
    of becomes a tag.

    Raises:
        InvalidUpdate: If the file cannot be read, is empty, or is no text.
        BranchSealed: If the branch takes no writes.
    """
    path = file_path("idea_path", idea_path)
    content = read_text(path)
    digest = sha256(content)
    if branch.core.get(_IDEA_HASH) == digest:
        return False
    summary = summarize_idea(content, branch.config.section_budgets)
    tags = [IDEA_TAG, *([ROOT_IDEA_TAG] if branch.facts.parent is None else [])]
    tags += [f"node_uid:{node_uid}"] if node_uid else []
    keep_record(branch, f"{summary}\n\n{content}", tags, {"path": str(path)})
    branch.core.set("idea_md_summary", summary, importance=5)
    branch.core.set(_IDEA_HASH, digest, importance=5)
    return True


def summarize_idea(content: str, budgets: Mapping[str, int]) -> str:
    """Return five bullets made of the ``## `` sections of an idea.

    The budgets are characters: ``idea_section_limit`` (a bullet) and ``idea_summary`` (the whole).
    """
    sections = idea_sections(content)
    lines = []
    for title, names in _BULLETS.items():
        text = next((sections[name] for name in names if sections.get(name)), NOT_PROVIDED)
        short = Compressor.cut(" ".join(text.split()), budgets["idea_section_limit"])
        lines.append(f"- {title}: {short}")
    if all(line.endswith(NOT_PROVIDED) for line in lines):
        lines[0] = f"- Purpose: {' '.join(content.split())}"
    share = budgets["idea_summary"] // len(lines) - 1
    if len("\n".join(lines)) > budgets["idea_summary"]:
        lines = [Compressor.cut(line, share) for line in lines]
    return Compressor.cut("\n".join(lines), budgets["idea_summary"])


def idea_sections(content: str) -> dict[str, str]:
    """Return the text below each ``## `` heading, by the title in lower case."""
    headings = list(_HEADING.finditer(content))
    ends = [heading.start() for heading in headings[1:]] + [len(content)]
    return {
        heading[1].strip().lower(): content[heading.end() : end].strip()
        for heading, end in zip(headings, ends, strict=False)
    }


def ingest_phase0_internal_info(
    branch: BranchHandle,
    payload: Mapping[str, Any],
    *,
    artifact_paths: Iterable[str | Path] = (),
    command: str = "",
    node_uid: str | None = None,
) -> bool:
    """Keep findings of Phase 0, with a line in core memory, and return whether that is new.

    The payload is plain data: the plan, the environment, and whatever else there is. The first
    5,000 characters of the files are quoted; `command` is the one that Phase 0 ran, and the node
    becomes a tag. Of a run, the branch is its root.

    Raises:
        InvalidUpdate: If the payload is no plain data, or a file cannot be read.
        BranchSealed: If the branch takes no writes.
    """
    try:
        data = json.dumps(dict(payload), ensure_ascii=False, indent=2, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidUpdate("payload", f"must be plain data: {error}") from error
    quotes = [(path, read_text(path)) for path in paths("artifact_paths", artifact_paths)]
    whole = "\0".join([data, command, *(text for _, text in quotes)])
    digest = sha256(whole)
    if branch.core.get(_PHASE0_HASH) == digest:
        return False
    facts = [f"{key}={value}" for key, value in _flat(payload)]
    line = " | ".join([*facts, *([f"command={command}"] if command else [])])
    summary = Compressor.cut(line, branch.config.section_budgets["phase0_summary"])
    parts = [summary, f"# Phase 0 Internal Info\n{data}"]
    parts += [f"## {path.name}\n{Compressor.cut(text, _ARTIFACT_CHARS)}" for path, text in quotes]
    tags = [PHASE0_TAG, *([f"node_uid:{node_uid}"] if node_uid else [])]
    keep_record(branch, "\n\n".join(parts), tags, {})
    branch.core.set("phase0_summary", summary, importance=5)
    branch.core.set(_PHASE0_HASH, digest, importance=5)
    return True


def _flat(payload: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the values that fit in one line: values of any depth that are no long texts."""
    for key, value in payload.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list | tuple):
            if value and all(isinstance(item, str | int | float) for item in value):
                yield name, ", ".join(map(str, value))
        elif value is not None and value != "":
            yield name, " ".join(str(value).split())


def ingest_environment(branch: BranchHandle, facts: Mapping[str, Any]) -> bool:
    """Keep facts about a machine in a record, the main ones in core memory, and return if new.

    Of a run, the branch is its root. The main facts are ``cpu``, ``cpus``, ``memory_mib``,
    ``gpus``, ``os``, ``kernel``, ``compilers`` and ``tools``.

    Raises:
        BranchSealed: If the branch takes no writes.
    """
    facts = {name: value for name, value in facts.items() if name not in _PASSING_FACTS}
    text = json.dumps(facts, ensure_ascii=False, indent=2, sort_keys=True)
    digest = sha256(text)
    if branch.core.get(_ENVIRONMENT_HASH) == digest:
        return False
    keep_record(branch, text, [ENVIRONMENT_TAG], {})
    cpu = [str(facts.get("cpu", "")), f"{facts['cpus']} usable" if "cpus" in facts else ""]
    memory_mib = facts.get("memory_mib")
    if isinstance(memory_mib, int):
        cpu.append(f"{memory_mib / 1024:.0f} GiB")
    core = {
        "hardware_cpu": ", ".join(filter(None, cpu)),
        "hardware_gpu": _joined(facts.get("gpus")),
        "hardware_os": " ".join(str(facts[key]) for key in ("os", "kernel") if key in facts),
        "hardware_compiler": _joined(facts.get("compilers")),
        "hardware_tools": _joined(facts.get("tools")),
    }
    for key, value in core.items():
        if value:
            branch.core.set(key, value, importance=4)
    branch.core.set(_ENVIRONMENT_HASH, digest, importance=5)
    return True


def _joined(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def keep_record(branch: BranchHandle, text: str, tags: list[str], meta: Mapping[str, Any]) -> int:
    """Write a record, or update the one in view that has the same tags, and return the id."""
    found = branch.records(tags=tags, limit=1)
    if found and set(found[0].tags) == set(tags):
        branch.update(found[0].id, text=text, meta=meta)
        return found[0].id
    return branch.remember(text, tags=tags, meta=meta)


def sha256(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        InvalidUpdate: If it cannot be read, is empty, or is no text.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InvalidUpdate(str(path), f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidUpdate(str(path), f"is no UTF-8 text: {error}") from error
    if not text.strip():
        raise InvalidUpdate(str(path), "is empty")
    if "\0" in text:
        raise InvalidUpdate(str(path), "has a NUL character, so it is no text")
    return text
