"""The sections of the final memory, in the order in which a fact claims its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from taskweaver.memory.branched.run import paper_nodes as nodes
from taskweaver.memory.branched.run.environment import ENVIRONMENT_TAG
from taskweaver.memory.branched.run.paper_ledger import Fact, FactLedger, is_telling
from taskweaver.memory.branched.run.paper_view import PREAMBLE, RunView
from taskweaver.memory.branched.tiers.core import INDEX_KEY, RESERVED
from taskweaver.memory.branched.types import Event, Record

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

WHY_NOT: Mapping[str, str] = {
    "executive_summary": "no result was noted",
    "best_node_details": "no node measured anything, and the branch holds no key of its own",
    "vlm_analysis": "no plot was analysed",
    "top_nodes_comparison": "the search passed no nodes to compare",
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
    "resources_used": "no resource file was given, and no use of a resource was noted",
    "execution_feedback": "no phase of the best node was noted",
    "failure_modes_timeline": "no branch of the run noted a failure",
    "ablations_negative": "no ablation ran, and no attempt fell behind the node it came from",
}


def fill(ledger: FactLedger, view: RunView, index: Mapping[str, Any]) -> None:
    """Add all facts to a ledger; of facts in several sections, the first one added shows them.

    `index` has the search's facts about its nodes; see docs/memory.md.
    """
    best = index.get("best_node_data") or {}
    top = index.get("top_nodes_data") or []
    baseline = index.get("baseline_data") or {}
    ids = {nodes.plain(node.get("id", "")) for node in (best, baseline, *top)}
    sources = {id_: view.result_sources(id_) for id_ in ids}
    ledger.add("executive_summary", nodes.summary_facts(index, sources) or _summary(view))
    ledger.add("executive_summary", _counted(view))
    ledger.add("best_node_details", nodes.best_facts(best) or _best(view))
    ledger.add("best_node_details", _parameters(view))
    ledger.add("vlm_analysis", nodes.plot_facts(best))
    ledger.add("vlm_analysis", view.happened("vlm_analysis_complete"))
    ledger.add("vlm_analysis", view.tagged("VLM_ANALYSIS"))
    ledger.show("top_nodes_comparison", nodes.top_facts(top, best.get("id"), sources))
    _fill_negative(ledger, view, index)
    _fill_idea(ledger, view)
    results = view.result_facts(index.get("repeated_data") or {})
    ledger.add("results", view.newest(results))
    _fill_run(ledger, view, best)


def _fill_negative(ledger: FactLedger, view: RunView, index: Mapping[str, Any]) -> None:
    failed = index.get("failed_nodes_data") or []
    failures = view.failure_facts(nodes.fixes(failed))
    ledger.add("failure_modes_timeline", failures)
    noted = {view.node_of(row) for row in view.failures}
    unknown = [node for node in failed if nodes.plain(node.get("id", "")) not in noted]
    ledger.add("failure_modes_timeline", nodes.failed_facts(unknown))
    attempts = index.get("attempts_data") or []
    compared = [node.get("id") for node in index.get("top_nodes_data") or [] if node.get("id")]
    shown = [node for node in attempts if node.get("id") in compared]
    others = [node for node in attempts if node not in shown]
    ledger.add("ablations_negative", nodes.attempt_facts(others))
    if shown:
        names = ", ".join(nodes.plain(node["id"]) for node in shown)
        text = f"See Top Nodes Comparison too: {names}"
        ledger.add("ablations_negative", [Fact(text, [nodes.source_of(node) for node in shown])])
    ledger.add(
        "ablations_negative", _tested(view, "ABLATIONS", "stage4_complete", "Ablations tested")
    )
    ledger.add("ablations_negative", view.tagged("ABLATION", "ABLATIONS"))


def _fill_idea(ledger: FactLedger, view: RunView) -> None:
    title = [Fact(view.title, ["idea.md"])] if view.title else []
    ledger.add("title_candidates", title)
    ledger.add("abstract_material", view.idea_lines("abstract", "task goal", PREAMBLE))
    ledger.add("problem_statement", view.idea_lines("task goal", "purpose", "abstract", PREAMBLE))
    ledger.add("hypothesis", view.idea_lines("short hypothesis", "hypothesis"))
    ledger.add("method", view.idea_lines("experiments", "code", "method"))
    ledger.add("method", _created(view))
    ledger.add("experimental_setup", view.keys(*_HARDWARE))
    _fill_environment(ledger, view)
    ledger.add("experimental_setup", view.idea_lines("evaluation", "task evaluation"))
    ledger.add("experimental_setup", _tested(view, "DATASETS_TESTED", "stage2_complete", "Tested"))
    ledger.add("phase0_internal_info_summary", _phase0(view))
    ledger.add(
        "threats_to_validity", view.idea_lines("risk factors and limitations", "limitations")
    )


def _fill_run(ledger: FactLedger, view: RunView, best: Mapping[str, Any]) -> None:
    ledger.add("reproducibility_checklist", view.keys(*_CHECKLIST))
    ledger.add("narrative_bullets", view.tagged("LLM_INSIGHT", "FINDINGS", "SUMMARY"))
    ledger.add("narrative_bullets", _split(view, "NODE_SUMMARY"))
    ledger.add("narrative_bullets", _findings(view))
    ledger.add("narrative_bullets", view.happened("stage_summary"))
    ledger.add("narrative_bullets", view.tagged("BEST_NODE"))
    ledger.add("resources_used", [*_resources(view), *_listed_resources(view)])
    ledger.add("resources_used", view.happened("resource_used"))
    ledger.add("execution_feedback", nodes.execution_facts(best))
    own = [event for event in view.events if view.names[event.branch] == view.chain[0]]
    ledger.add("execution_feedback", [
        Fact(view.cut(f"Phase {_PHASES[event.kind]}: {event.text}"), [view.source(event)],
             key=f"phase {_PHASES[event.kind]}")
        for event in own if event.kind in _PHASES
    ])  # fmt: skip


def _summary(view: RunView) -> list[Fact]:
    """Return best and baseline as the memory alone knows them: the last and the first result."""
    results = view.result_facts()
    if not results:
        return []
    named = [("Best", results[-1]), ("Baseline", results[0])][: len(results)]
    for title, fact in named:
        fact.text = f"{title}: {fact.text}"
    return [fact for _, fact in named]


def _counted(view: RunView) -> list[Fact]:
    found = [event for event in view.events if event.kind == "journal_summary"][-1:]
    return [Fact(view.cut(event.text), [view.source(event)], key="counts") for event in found]


def _best(view: RunView) -> list[Fact]:
    """Return the best branch as the memory alone knows it."""
    if len(view.chain) < 2:
        return []
    text = f"Branch: {view.chain[0]}, from {view.chain[1]}"
    return [Fact(text, [f"branch {view.chain[0]}"])]


def _parameters(view: RunView) -> list[Fact]:
    """Return the keys the branches of the chain set, but for those of the run as a whole."""
    return view.keys(*sorted(set(view.core) - _OF_THE_RUN))


def _created(view: RunView) -> list[Fact]:
    facts = []
    for event in view.events:
        if event.kind == "node_created":
            match = _CREATED.match(event.text)
            head = f"{match[2]}: {match[3]} of stage {match[1]}" if match else ""
            rest = event.text[match.end() :] if match else event.text
            facts.append(Fact(view.cut(f"{head} {rest}"), [view.source(event)]))
    return facts


def _fill_environment(ledger: FactLedger, view: RunView) -> None:
    """Add facts about the machine, one line each; those core memory holds are there already."""
    held = {name for key, names in _HARDWARE.items() if key in view.core for name in names}
    shown = view.keys(*_HARDWARE)
    for record in view.records:
        if ENVIRONMENT_TAG not in record.tags:
            continue
        source = view.source(record)
        data = _mapping(record.text)
        for fact in shown if data is not None else ():
            ledger.cite(fact.text, source)
        parts = {"": record.text} if data is None else data
        ledger.add("experimental_setup", [
            Fact(view.cut(f"{name}: {_listed(value)}".removeprefix(": ")), [source])
            for name, value in parts.items()
            if name not in held
        ])  # fmt: skip


def _mapping(text: str) -> Mapping[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # another record with this tag, in words
        return None
    return data if isinstance(data, Mapping) else None


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
    """Return the lists of things a stage tested; event and record of one are one fact."""
    rows: list[Event | Record] = [
        row for row in view.records if {tag, "STAGE_COMPLETE"} <= {*row.tags}
    ]
    rows += [row for row in view.events if row.kind == kind]
    return [
        Fact(
            view.cut(f"{title}: {row.text}"),
            [view.source(row)],
            key=f"{title} {row.text}",
            same=row.text,
        )
        for row in rows
    ]


def _split(view: RunView, tag: str) -> list[Fact]:
    """Return records with a tag, a fact for each of their lines."""
    return [
        Fact(
            view.cut(f"{view.node_of(record)}: {line}"),
            [view.source(record)],
            same=_unlabelled(line),
        )
        for record in view.records
        if tag in record.tags
        for line in record.text.splitlines()
        if line.strip()
    ]


def _unlabelled(line: str) -> str:
    """Return a labelled line without its label, where the rest is telling."""
    rest = line.partition(": ")[2]
    return rest if is_telling(rest) else line


def _findings(view: RunView) -> list[Fact]:
    """Return the findings of nodes as events give them: the beginning of the record's."""
    facts = []
    for event in view.events:
        if event.kind == "node_summary" and event.text.strip():
            whole = event.text.rpartition(" ")[0] if len(event.text) >= _FINDING_CHARS else ""
            same = _unlabelled(f"findings: {whole or event.text}")
            text = view.cut(f"{view.node_of(event)}: findings: {event.text}")
            facts.append(Fact(text, [view.source(event)], same=same))
    return facts


def _listed_resources(view: RunView) -> list[Fact]:
    """Return the resources of the run's file, used or not, as the index lists them."""
    entry = view.core.get(INDEX_KEY)
    lines = entry.value.splitlines() if entry else []
    return [
        Fact(view.cut(f"Listed: {line.removeprefix('- ')}"), [view.source(entry)])
        for line in lines
        if entry and line.startswith("- ")
    ]


def _resources(view: RunView) -> list[Fact]:
    """Return the resources that were used, each with the record that describes it."""
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
