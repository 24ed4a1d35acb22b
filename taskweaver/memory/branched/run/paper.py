"""The final memory of a run: the facts a paper needs, each on one line with the sources.

It is put together from the memory, and from plain data the search passes about its nodes, without
a model, so the same memory gives the same files to the last byte. The table of sections has the
order in which a fact claims its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.run import paper_nodes as nodes
from taskweaver.memory.branched.run.ingest import ENVIRONMENT_TAG
from taskweaver.memory.branched.run.paper_view import (
    PREAMBLE,
    Fact,
    FactLedger,
    RunView,
    is_telling,
    read_view,
)
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.tiers.core import INDEX_KEY, RESERVED
from taskweaver.memory.branched.types import Event, Record
from taskweaver.memory.branched.upkeep.transfer import write_whole
from taskweaver.memory.branched.values import folder_path
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
    """Write the final memory of a run as text and as data, into ``memory/`` of the folder.

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
    index = nodes.checked_index(artifacts_index or {})
    parts = nodes.parts(index)
    view = read_view(memory, root_branch_id, best, parts, is_limited=is_limited)
    ledger = fill(view)
    names = list(_PLACES)
    sections = {name: _plain(ledger, name) for name in names}
    data = {
        "sections": sections,
        "facts": {name: [_fact_row(fact) for fact in ledger.facts(name)] for name in names},
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
    write_whole(folder / config.final_memory_filename_md, text)
    masked = redact_secrets_in(data)
    text = json.dumps(masked, ensure_ascii=False, indent=2, sort_keys=True, default=str)
    write_whole(folder / config.final_memory_filename_json, text + "\n")
    memory.log_operation("generate_final_memory_for_paper", best)
    return {**sections, "provenance": list(view.chain), "artifacts_index": index}


def _fact_row(fact: Fact) -> dict[str, Any]:
    row = {"text": fact.text, "sources": list(fact.sources)}
    return {**row, "block": fact.block} if fact.block else row


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
        cells = [str(rank), *nodes.cells(node, best), "; ".join(fact.sources)]
        rows.append(f"| {' | '.join(map(inert_prose, cells))} |")
    return "\n".join(rows)


_HARDWARE: Mapping[str, tuple[str, ...]] = {
    "hardware_cpu": ("cpu", "cpus", "memory_mib"),
    "hardware_gpu": ("gpus",),
    "hardware_os": ("os", "kernel"),
    "hardware_compiler": ("compilers",),
    "hardware_tools": ("tools",),
}
_CHECKLIST = ("idea_md_hash", "phase0_hash", "resource_digest", "environment_hash")
_OF_THE_RUN = frozenset(
    {*_HARDWARE, *_CHECKLIST, "idea_md_summary", "phase0_summary", "last_vlm_analysis",
     *RESERVED}
)  # fmt: skip
_FINDING_CHARS = 200
"""Length at which an event cuts a finding, in the middle of a word."""
_CREATED = re.compile(r"^stage=(\S+) node_id=(\S+) kind=(\S+)")
_PHASES = {
    "phase1_complete": "download",
    "coding_complete": "coding",
    "compile_complete": "compile",
    "run_complete": "run",
}


def fill(view: RunView) -> FactLedger:
    """Return all facts. Of facts in several sections, the first one added shows them."""
    ledger = FactLedger()
    for section, read, *arguments in _SECTIONS:
        # The table has a row for each top node, also for a node that stands elsewhere.
        add = ledger.show if read is nodes.top_facts else ledger.add
        add(section, read(view, *arguments))
    return ledger


def _summary(view: RunView) -> list[Fact]:
    """Return the facts of a search, or best and baseline as the last and the first result."""
    given = nodes.summary_facts(view)
    if given:
        return given
    results = view.result_facts()
    best_and_baseline = [*results[-1:], *results[:-1][:1]]
    for title, fact in zip(("Best", "Baseline"), best_and_baseline, strict=False):
        fact.text = f"{title}: {fact.text}"
    return best_and_baseline


def _counted(view: RunView) -> list[Fact]:
    found = [event for event in view.events if event.kind == "journal_summary"]
    return [view.fact(event, event.text, key="counts") for event in found[-1:]]


def _best(view: RunView) -> list[Fact]:
    """Return the best node, or the best branch without data of nodes."""
    given = nodes.best_facts(view)
    if given or len(view.chain) < 2:
        return given
    branch, parent, *_ = view.chain
    return [Fact(f"Branch: {branch}, from {parent}", [f"branch {branch}"])]


def _parameters(view: RunView) -> list[Fact]:
    """Return the keys the branches of the chain set, except keys of the run as a whole."""
    return view.keys(*sorted(set(view.core) - _OF_THE_RUN))


def _title_facts(view: RunView) -> list[Fact]:
    return [Fact(view.title, ["idea.md"])] if view.title else []


def _created(view: RunView) -> list[Fact]:
    facts = []
    for event in view.events:
        if event.kind == "node_created":
            match = _CREATED.match(event.text)
            head = f"{match[2]}: {match[3]} of stage {match[1]}" if match else ""
            rest = event.text[match.end() :] if match else event.text
            facts.append(view.fact(event, f"{head} {rest}"))
    return facts


def _environment(view: RunView) -> list[Fact]:
    """Return facts about the machine, from core memory and from records."""
    known = view.keys(*_HARDWARE)
    held = {name for key, names in _HARDWARE.items() if key in view.core for name in names}
    facts = []
    for record in view.records:
        if ENVIRONMENT_TAG not in record.tags:
            continue
        try:
            data = json.loads(record.text)
        except (ValueError, RecursionError):  # another record with this tag, in words
            data = None
        if not isinstance(data, Mapping):
            facts.append(view.fact(record, record.text))
            continue
        for fact in known:
            fact.sources = [*fact.sources, view.source(record)]
        facts += [
            view.fact(record, f"{name}: {_listed(value)}")
            for name, value in data.items()
            if name not in held
        ]
    return [*known, *facts]


def _listed(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else nodes.plain(value)


def _phase0(view: RunView) -> list[Fact]:
    entry = view.core.get("phase0_summary")
    if entry is None:
        return []
    held = [row for row in view.records if "PHASE0_INTERNAL" in row.tags]
    sources = [view.source(entry), *map(view.source, held)]
    return [Fact(view.cut(part), sources) for part in entry.value.split(" | ") if part.strip()]


def _tested(view: RunView, tag: str, kind: str, title: str) -> list[Fact]:
    """Return the lists of things a stage tested. Event and record of one are one fact."""
    rows: list[Event | Record] = [
        row for row in view.records if {tag, "STAGE_COMPLETE"} <= {*row.tags}
    ]
    rows += [row for row in view.events if row.kind == kind]
    return [
        view.fact(row, f"{title}: {row.text}", row.text, key=f"{title} {row.text}") for row in rows
    ]


def _node_summaries(view: RunView) -> list[Fact]:
    """Return summaries of nodes, a fact for each line of a record."""
    return [
        view.fact(record, f"{view.node_of(record)}: {line}", _unlabelled(line))
        for record in view.records
        if "NODE_SUMMARY" in record.tags
        for line in record.text.splitlines()
        if line.strip()
    ]


def _unlabelled(line: str) -> str:
    """Return a labelled line without the label, where the rest is telling."""
    rest = line.partition(": ")[2]
    return rest if is_telling(rest) else line


def _findings(view: RunView) -> list[Fact]:
    """Return the findings of nodes in events, which cut the findings of records."""
    facts = []
    for event in view.events:
        if event.kind == "node_summary" and event.text.strip():
            whole = event.text.rpartition(" ")[0] if len(event.text) >= _FINDING_CHARS else ""
            same = _unlabelled(f"findings: {whole or event.text}")
            facts.append(view.fact(event, f"{view.node_of(event)}: findings: {event.text}", same))
    return facts


def _listed_resources(view: RunView) -> list[Fact]:
    """Return the resources that the index lists, used or not."""
    entry = view.core.get(INDEX_KEY)
    return [
        view.fact(entry, f"Listed: {line.removeprefix('- ')}")
        for line in (entry.value.splitlines() if entry else ())
        if entry and line.startswith("- ")
    ]


def _resources(view: RunView) -> list[Fact]:
    """Return the used resources, each with the describing record."""
    entry = view.core.get("resource_used")
    if entry is None:
        return []
    try:
        used = json.loads(entry.value)
    except (ValueError, RecursionError):  # set by a model, in words
        return view.keys("resource_used")
    facts = []
    for item in used if isinstance(used, list) else [used]:
        records = [row for row in view.records if f"resource_id:{item}" in row.tags]
        text = "; ".join(line for row in records[-1:] for line in row.text.splitlines()[:4])
        sources = [view.source(entry), *map(view.source, records[-1:])]
        facts.append(Fact(view.cut(f"{item}: {text}".rstrip(": ")), sources))
    return facts


def _phases(view: RunView) -> list[Fact]:
    """Return the phases of the best branch from events."""
    return [
        view.fact(event, f"Phase {phase}: {event.text}", key=f"phase {phase}")
        for event in view.events
        if view.names[event.branch] == view.chain[0] and (phase := _PHASES.get(event.kind))
    ]


def _results(view: RunView) -> Sequence[Fact]:
    """Return the newest results. The summary needs the first one, too."""
    return view.newest(view.result_facts())


_SECTIONS: tuple[tuple[str, Callable[..., Iterable[Fact]], *tuple[str, ...]], ...] = (
    ("executive_summary", _summary),
    ("executive_summary", _counted),
    ("best_node_details", _best),
    ("best_node_details", _parameters),
    ("vlm_analysis", nodes.fields_of_best, *nodes.PLOTS),
    ("vlm_analysis", RunView.happened, "vlm_analysis_complete"),
    ("vlm_analysis", RunView.tagged, "VLM_ANALYSIS"),
    ("top_nodes_comparison", nodes.top_facts),
    ("failure_modes_timeline", nodes.failure_facts),
    ("ablations_negative", nodes.attempt_facts),
    ("ablations_negative", _tested, "ABLATIONS", "stage4_complete", "Ablations tested"),
    ("ablations_negative", RunView.tagged, "ABLATION", "ABLATIONS"),
    ("title_candidates", _title_facts),
    ("abstract_material", RunView.idea_lines, "abstract", "task goal", PREAMBLE),
    ("problem_statement", RunView.idea_lines, "task goal", "purpose", "abstract", PREAMBLE),
    ("hypothesis", RunView.idea_lines, "short hypothesis", "hypothesis"),
    ("method", RunView.idea_lines, "experiments", "code", "method"),
    ("method", _created),
    ("experimental_setup", _environment),
    ("experimental_setup", RunView.idea_lines, "evaluation", "task evaluation"),
    ("experimental_setup", _tested, "DATASETS_TESTED", "stage2_complete", "Tested"),
    ("phase0_internal_info_summary", _phase0),
    ("threats_to_validity", RunView.idea_lines, "risk factors and limitations", "limitations"),
    ("results", _results),
    ("reproducibility_checklist", RunView.keys, *_CHECKLIST),
    ("narrative_bullets", RunView.tagged, "LLM_INSIGHT", "FINDINGS", "SUMMARY"),
    ("narrative_bullets", _node_summaries),
    ("narrative_bullets", _findings),
    ("narrative_bullets", RunView.happened, "stage_summary"),
    ("narrative_bullets", RunView.tagged, "BEST_NODE"),
    ("resources_used", _resources),
    ("resources_used", _listed_resources),
    ("resources_used", RunView.happened, "resource_used"),
    ("execution_feedback", nodes.phase_facts),
    ("execution_feedback", nodes.fields_of_best, "exec_time_feedback"),
    ("execution_feedback", _phases),
)
"""Sections, each with a reader of its facts and the reader's arguments."""
