"""The final memory of a run: the facts a paper needs, each on one line with its sources.

It is put together from the memory, and from plain data the search passes about its nodes, without
a model, so the same memory gives the same files to the last byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import StoreUnwritable
from taskweaver.memory.branched.run import paper_nodes
from taskweaver.memory.branched.run.paper_ledger import Fact, FactLedger
from taskweaver.memory.branched.run.paper_sections import fill
from taskweaver.memory.branched.run.paper_view import RunView, read_view
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.values import folder_path
from taskweaver.utils.files import write_text
from taskweaver.utils.markup.characters import with_line_feeds, without_steering
from taskweaver.utils.markup.inert_markdown import (
    inert_line,
    inert_paragraph,
    inert_prose,
    inert_text,
)
from taskweaver.utils.redact import redact_secrets, redact_secrets_in
from taskweaver.utils.text import fenced, shorten

_BLOCK_CHARS = 8000
_HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Executive Summary": {"executive_summary": "no result was noted"},
    "Best Node Details": {
        "best_node_details": "no node measured anything, and the branch holds no key of its own",
    },
    "VLM Analysis & Visual Feedback": {"vlm_analysis": "no plot was analysed"},
    "Top Nodes Comparison": {"top_nodes_comparison": "the search passed no nodes to compare"},
    "Memory-Based Analysis": {
        "title_candidates": "no idea.md with a title was ingested",
        "abstract_material": "the idea has no abstract, task goal or introduction",
        "problem_statement": "the idea has no task goal, purpose, abstract or introduction",
        "hypothesis": "the idea states no hypothesis",
        "method": "the idea describes no experiments, and no node was created",
        "experimental_setup": "no facts about the machine were ingested",
        "phase0_internal_info_summary": "no Phase 0 took place",
        "results": "no node reached a result",
        "threats_to_validity": "the idea names no risk factors or limitations",
        "reproducibility_checklist": "no hash of an input was kept",
        "narrative_bullets": "no insight, finding or summary was recorded",
    },
    "Resources Used": {
        "resources_used": "no resource file was given, and no use of a resource was noted",
    },
    "Execution Feedback": {"execution_feedback": "no phase of the best node was noted"},
    "Negative Results & Lessons Learned": {
        "failure_modes_timeline": "no branch of the run noted a failure",
        "ablations_negative": "no ablation ran, and no attempt fell behind the node it came from",
    },
}
"""Headings with their sections, and the reason why a section shows no fact."""
_TOP_HEADER = (
    "Rank", "Node", "Metric", "Gain over parent", "Changed from parent", "Plan and parameters",
    "Findings", "Sources",
)  # fmt: skip
_TITLES = {"ablations_negative": "Ablations And Attempts Without Gain"}
"""Headings of sections whose keys, those of the original, say too little."""
_PLACES = {name: title for title, names in _HEADINGS.items() for name in names}


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
        best_branch_id: Branch of the best node; None takes the root, as of a run without result.
        artifacts_index: The search's facts about its nodes, for example ``best_node_data`` and
            ``top_nodes_data``, see docs/memory.md. None leaves their parts out.
        is_limited: Whether texts are cut at 400 characters and lists at 50 lines.

    Returns:
        The sections by key, ``provenance``, and ``artifacts_index``; an empty dictionary, and no
        files, when `memory.final_memory_enabled` is off.

    Raises:
        UnknownBranch: If a branch does not exist, or does not descend from the root.
        InvalidUpdate: If `run_dir` is no path, or `artifacts_index` is malformed.
        StoreUnwritable: If the files cannot be written.
    """
    if not memory.config.final_memory_enabled:
        return {}
    folder = folder_path("run_dir", run_dir) / "memory"
    best = best_branch_id or root_branch_id
    index = paper_nodes.checked_index(artifacts_index or {})
    parts = paper_nodes.parts(index)
    view = read_view(memory, root_branch_id, best, parts, is_limited=is_limited)
    ledger = fill(view)
    names = list(_PLACES)
    sections = {name: _plain(ledger, name) for name in names}
    data = {
        "sections": sections,
        "facts": {name: [_data(fact) for fact in ledger.facts(name)] for name in names},
        "provenance": list(view.chain),
        "core_memory": {
            key: {"value": entry.value, "importance": entry.importance}
            for key, entry in view.core.items()
        },
        "artifacts_index": index,
    }
    config = memory.config
    # Shown to others: programs and models may have written a key.
    text = redact_secrets(_markdown(ledger, view))
    _write(folder / config.final_memory_filename_md, text)
    masked = redact_secrets_in(data)
    text = json.dumps(masked, ensure_ascii=False, indent=2, sort_keys=True, default=str)
    _write(folder / config.final_memory_filename_json, text + "\n")
    memory.log_operation("generate_final_memory_for_paper", best)
    return {**sections, "provenance": list(view.chain), "artifacts_index": index}


def _data(fact: Fact) -> dict[str, Any]:
    data = {"text": fact.text, "sources": list(fact.sources)}
    return {**data, "block": fact.block} if fact.block else data


def _plain(ledger: FactLedger, name: str) -> str:
    """Return a section as plain text."""
    lines = []
    for fact in ledger.facts(name):
        lines.append(f"- {fact.line}")
        lines += [fact.block] if fact.block else []
    return "\n".join(lines) or _absent(ledger, name)


def _absent(ledger: FactLedger, name: str) -> str:
    """Return why a section shows no fact."""
    places = dict.fromkeys(_title(other) for other in ledger.elsewhere(name))
    if places:
        return f"See {', '.join(places)}."
    return f"(not found in memory: {_HEADINGS[_PLACES[name]][name]})"


def _title(name: str) -> str:
    """Return the heading a section stands below."""
    title = _PLACES[name]
    if len(_HEADINGS[title]) == 1:
        return title
    return _TITLES.get(name, name.replace("_", " ").title())


def _markdown(ledger: FactLedger, view: RunView) -> str:
    parts = []
    for title, names in _HEADINGS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += [f"### {_title(name)}"] if len(names) > 1 else []
            is_table = name == "top_nodes_comparison" and ledger.facts(name)
            parts.append(_table(ledger, view.index) if is_table else _section(ledger, name))
    parts += ["## Provenance Chain", inert_text(" -> ".join(view.chain))]
    body = "\n\n".join(parts)
    return f"# Final Memory For Paper\n\n{body}\n"


def _section(ledger: FactLedger, name: str) -> str:
    lines: list[str] = []
    for fact in ledger.facts(name):
        # No text can define a reference, so the brackets around sources make no link.
        sources = f" [{inert_line('; '.join(fact.sources))}]" if fact.sources else ""
        lines.append(f"- {inert_paragraph(fact.text)}{sources}")
        if fact.block:
            block = without_steering(with_line_feeds(fact.block))
            lines += ["", fenced(shorten(block, _BLOCK_CHARS), "text"), ""]
    return "\n".join(lines).strip() or inert_text(_absent(ledger, name))


def _table(ledger: FactLedger, index: Mapping[str, Any]) -> str:
    best = index["best_node_data"].get("id")
    rows = [f"| {' | '.join(_TOP_HEADER)} |", f"|{' --- |' * len(_TOP_HEADER)}"]
    facts = ledger.facts("top_nodes_comparison")
    for rank, (node, fact) in enumerate(zip(index["top_nodes_data"], facts, strict=True), start=1):
        cells = [str(rank), *paper_nodes.cells(node, best), "; ".join(fact.sources)]
        rows.append(f"| {' | '.join(map(inert_prose, cells))} |")
    return "\n".join(rows)


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        write_text(path, text)
    except OSError as error:
        raise StoreUnwritable(f"{path} cannot be written: {error}") from error
