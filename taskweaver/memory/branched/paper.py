"""The final memory of a run: what the best branch knows, in the order a paper needs it.

It is put together from the memory alone, without a model, so the same memory gives the same files
to the last byte. Every line says where it comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.compression import Compressor
from taskweaver.memory.branched.errors import StoreUnwritable, UnknownBranch
from taskweaver.memory.branched.ingest import IDEA_TAG, idea_sections
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.types import Branch, CoreEntry, Event, Record
from taskweaver.utils.files import write_text
from taskweaver.utils.inert_markdown import inert_markdown
from taskweaver.utils.text import fenced

NOT_FOUND = "(not found in memory)"
_LIMIT_CHARS, _LIMIT_ROWS = 400, 50
_SETUP_KEYS = ("hardware_cpu", "hardware_gpu", "hardware_os", "hardware_compiler", "hardware_tools")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the best branch sees, oldest first."""

    core: Mapping[str, CoreEntry]
    events: Sequence[Event]
    records: Sequence[Record]
    idea: Mapping[str, str]
    title: str
    chain: Sequence[str]
    names: Mapping[int, str]
    most_chars: int | None
    most_rows: int | None

    def key(self, *names: str) -> list[str]:
        """Return core values as lines with their provenance."""
        entries = [self.core[name] for name in names if name in self.core]
        return [
            f"- {entry.key}: {self.cut(entry.value)} [core, {self.names[entry.branch]}]"
            for entry in entries
        ]

    def happened(self, *kinds: str) -> list[str]:
        """Return events of some kinds (``*_failed`` means the ending) as lines."""
        found = [event for event in self.events if _is_kind(event.kind, kinds)]
        return [self.event(event) for event in found[-(self.most_rows or len(found)) :]]

    def event(self, event: Event) -> str:
        """Return an event as a line with its provenance."""
        times = f" (x{event.count})" if event.count > 1 else ""
        place = f"[event {event.seq}, {self.names[event.branch]}]"
        return f"- {event.kind}{times}: {self.cut(event.text)} {place}"

    def tagged(self, *tags: str) -> list[str]:
        """Return records with any of some tags as lines with their provenance."""
        found = [record for record in self.records if set(tags) & set(record.tags)]
        return [
            f"- {self.cut(record.text)} [record {record.id}, {self.names[record.branch]}]"
            for record in found[-(self.most_rows or len(found)) :]
        ]

    def said(self, *sections: str) -> list[str]:
        """Return the first of some sections of the idea."""
        text = next((self.idea[name] for name in sections if self.idea.get(name)), "")
        return [f"{self.cut(text)} [idea.md]"] if text else []

    def cut(self, text: str) -> str:
        """Return a text on one line, cut where there is a limit."""
        line = " ".join(text.split())
        return line if self.most_chars is None else Compressor.cut(line, self.most_chars)


def _is_kind(kind: str, wanted: Iterable[str]) -> bool:
    return any(kind.endswith(name[1:]) if name.startswith("*") else kind == name for name in wanted)


def generate_final_memory(
    memory: BranchedMemory,
    run_dir: str | Path,
    root_branch_id: str,
    best_branch_id: str | None,
    *,
    artifacts_index: Mapping[str, Any] | None = None,
    is_limited: bool = False,
) -> dict[str, Any]:
    """Write the final memory of a run as text and as data, into ``memory/`` of its folder.

    Args:
        memory: The memory.
        run_dir: Folder of the run.
        root_branch_id: Root of the run.
        best_branch_id: Branch of the best node; all it sees counts. None takes the root.
        artifacts_index: What the search knows of its nodes: ``best_node_data`` and
            ``top_nodes_data``, see docs/memory.md. None leaves their parts out.
        is_limited: Whether texts are cut at 400 characters and lists at 50 lines.

    Returns:
        The sections by key, ``provenance``, and ``artifacts_index``; an empty dictionary, and no
        files, when `memory.final_memory_enabled` is off.

    Raises:
        UnknownBranch: If there is no such branch, or it does not descend from the root.
        StoreUnwritable: If the files cannot be written.
    """
    if not memory.config.final_memory_enabled:
        return {}
    best_branch_id = best_branch_id or root_branch_id
    facts = _facts(memory, best_branch_id, is_limited=is_limited)
    if memory.branch(root_branch_id).id not in facts.chain:
        raise UnknownBranch(f"Branch {best_branch_id!r} does not descend from {root_branch_id!r}.")
    index = dict(artifacts_index or {})
    sections = {key: "\n".join(lines) or NOT_FOUND for key, lines in _sections(facts).items()}
    data = {
        "sections": sections,
        "provenance": list(facts.chain),
        "core_memory": {
            key: {"value": entry.value, "importance": entry.importance}
            for key, entry in facts.core.items()
        },
        "artifacts_index": index,
    }
    config = memory.config
    folder = Path(run_dir) / "memory"
    _write(folder / config.final_memory_filename_md, _markdown(facts, sections, index))
    text = json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True, default=str)
    _write(folder / config.final_memory_filename_json, text + "\n")
    return {**sections, "provenance": list(facts.chain), "artifacts_index": index}


def _facts(memory: BranchedMemory, branch_id: str, *, is_limited: bool) -> _Facts:
    branches = {branch.number: branch for branch in memory.branches()}
    branch: Branch | None = memory.branch(branch_id)
    records = list(reversed(memory[branch_id].records()))
    ideas = [record.text for record in records if IDEA_TAG in record.tags]
    idea = ideas[-1] if ideas else ""
    heading = re.search(r"^# +(.+)$", idea, re.MULTILINE)
    chain = []
    while branch is not None:
        chain.append(branch.id)
        branch = branches.get(branch.parent) if branch.parent is not None else None
    return _Facts(
        memory[branch_id].core.entries(),
        list(reversed(memory[branch_id].events())),
        records,
        idea_sections(idea),
        heading[1].strip() if heading else "",
        chain,
        {number: item.id for number, item in branches.items()},
        _LIMIT_CHARS if is_limited else None,
        _LIMIT_ROWS if is_limited else None,
    )


def _sections(facts: _Facts) -> dict[str, list[str]]:
    """Return the lines of each section; an empty one is not in memory."""
    results = facts.happened("node_result", "metrics_extracted", "run_complete")
    negative = facts.happened("*_failed", "error_encountered")
    return {
        "title_candidates": [f"- {facts.title} [idea.md]"] if facts.title else [],
        "abstract_material": facts.said("abstract", "task goal") + results[-1:],
        "problem_statement": facts.said("task goal", "abstract", "purpose"),
        "hypothesis": facts.said("short hypothesis", "hypothesis"),
        "method": facts.said("experiments", "code", "method") + facts.happened("node_created"),
        "experimental_setup": facts.key(*_SETUP_KEYS) + facts.tagged("ENVIRONMENT"),
        "phase0_internal_info_summary": facts.key("phase0_summary"),
        "results": results + facts.tagged("SUCCESS", "METRICS"),
        "ablations_negative": facts.tagged("ABLATION", "ABLATIONS") + negative,
        "failure_modes_timeline": negative,
        "threats_to_validity": facts.said("risk factors and limitations", "limitations"),
        "reproducibility_checklist": facts.key("idea_md_hash", "phase0_hash", "resource_digest"),
        "narrative_bullets": facts.tagged("LLM_INSIGHT", "FINDINGS", "SUMMARY"),
        "resources_used": facts.key("resource_used") + facts.happened("resource_used"),
    }


def _markdown(facts: _Facts, sections: Mapping[str, str], index: Mapping[str, Any]) -> str:
    best = index.get("best_node_data") or {}
    top = index.get("top_nodes_data") or []
    analysis = "\n\n".join(
        f"### {key.replace('_', ' ').title()}\n\n{text}" for key, text in sections.items()
    )
    parts = {
        "Executive Summary": _fields(best, ("metric", "analysis")) or sections["results"],
        "Best Node Details": _fields(
            {"branch": facts.chain[0], **best},
            ("branch", "id", "plan", "overall_plan", "workspace_path", "code", "phase_artifacts"),
        ),
        "VLM Analysis & Visual Feedback": _fields(
            best, ("plot_analyses", "vlm_feedback_summary", "datasets_successfully_tested")
        ),
        "Top Nodes Comparison": _comparison(top),
        "Memory-Based Analysis": analysis,
        "Resources Used": sections["resources_used"],
        "Execution Feedback": _fields(best, ("exec_time_feedback",)),
        "Negative Results & Lessons Learned": sections["failure_modes_timeline"],
        "Provenance Chain": " -> ".join(facts.chain),
    }
    body = "\n\n".join(
        f"## {title}\n\n{inert_markdown(text or NOT_FOUND)}" for title, text in parts.items()
    )
    return f"# Final Memory For Paper\n\n{body}\n"


def _fields(data: Mapping[str, Any], names: Iterable[str]) -> str:
    lines = []
    for name in names:
        value = data.get(name)
        if value in (None, "", [], {}):
            continue
        title = name.replace("_", " ").capitalize()
        text = value if isinstance(value, str) else _plain(value)
        is_long = "\n" in text
        lines.append(f"**{title}:**\n\n{fenced(text)}\n" if is_long else f"**{title}:** {text}\n")
    return "\n".join(lines).rstrip()


def _plain(value: object) -> str:
    indent = 2 if isinstance(value, Mapping | list) and len(str(value)) > 80 else None
    return json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=True, default=str)


def _comparison(nodes: Sequence[Mapping[str, Any]]) -> str:
    if not nodes:
        return ""
    rows = ["| Rank | Node | Metric | Findings |", "| --- | --- | --- | --- |"]
    for rank, node in enumerate(nodes, start=1):
        cells = [str(rank), str(node.get("id", "")), _cell(node.get("metric"))]
        rows.append(f"| {' | '.join([*cells, _cell(node.get('analysis'))])} |")
    return "\n".join(rows)


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else _plain(value)
    return Compressor.cut(" ".join(text.split()), 200).replace("|", "\\|")


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        write_text(path, text)
    except OSError as error:
        raise StoreUnwritable(f"{path} cannot be written: {error}") from error
