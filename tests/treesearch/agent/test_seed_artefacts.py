"""Artefacts that the design documents promise, of one small run in each way of asking.

A line names the document, 000 on Phase 0, 002 on the phases, 004 on the memory as a whole, then the
place, such as a node or a log, and artefacts that are there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from seed_run import seed_run

from taskweaver.cli.search.search_command import run as search_options
from taskweaver.config.keys.known_keys import find
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search

GOOD, NO_COMPILE, NO_RUN, NO_DOWNLOAD, NO_CODE = "n0005", "n0001", "n0002", "n0003", "n0004"
"""Nodes of the run: the first that worked, and those that failed in a phase."""
NODE, LOG, PROMPT = f"nodes/{GOOD}", f"logs/0-run/phase_logs/node_{GOOD}", "logs/0-run/prompt_logs"

FILES = f"""
000 {NODE}/plans phase0_plan.json phase0_history_full.json phase0_llm_output.txt
000 {NODE}/prompts phase0_prompt.json phase0_prompt.md
000 memory memory.sqlite memory_calls.jsonl
002 {LOG} download.log compile.log run.log artifacts.json
002 {PROMPT}/node_{NO_RUN} draft_attempt1_round0.json draft_attempt1_round0.md
002 {PROMPT}/node_{GOOD} debug_attempt1_round1.md memory_operations.jsonl memory_injections.jsonl
002 memory memory_primitive.jsonl memory_public_api.jsonl memory_system.jsonl memory_internal.jsonl
004 memory resource_snapshot.json final_memory_for_paper.json final_memory_for_paper.md
004 logs/0-run memory_database.html
"""
EVENTS = f"""
002 {NO_COMPILE} compile_failed
004 {GOOD} node_created phase1_complete coding_complete compile_complete run_complete
004 {GOOD} metrics_extracted node_summary node_result vlm_analysis_complete
004 {NO_DOWNLOAD} phase1_failed
004 {NO_CODE} coding_failed
004 {NO_RUN} run_failed
004 root journal_summary stage_summary substage_complete stage2_complete stage4_complete
004 root stage_progression
"""
TAGS = f"""
000 root IDEA_MD ROOT_IDEA resource:dataset:rows
000 root resource_path:/workspace/shown/host/rows.csv
000 {GOOD} PHASE0_INTERNAL
002 {NO_COMPILE} COMPILE node:{NO_COMPILE}
004 {GOOD} SUCCESS stage:1 METRICS NODE_SUMMARY LLM_INSIGHT EVICTED_RECALL
004 {NO_RUN} ERROR
004 root SUMMARY FINDINGS STAGE_COMPLETE DATASETS_TESTED ABLATIONS STAGE_PROGRESSION
"""
CORE = f"""
000 root idea_md_summary RESOURCE_INDEX
000 {GOOD} phase0_summary
004 {GOOD} best_flags
"""
HINTS = f"""
000 {GOOD} phase0_planning
002 {NO_RUN} draft
002 {GOOD} debug
002 n0006 hyperparam_node
002 n0007 improve
002 n0008 ablation_node
"""
CALLS = """
002 calls mem_recall_append
002 public_api mem_archival_write mem_node_fork
002 system apply_llm_memory_updates render_for_prompt
002 primitive set_core write_event
"""
"""Operations in the logs of the memory's layers."""
OPERATIONS = """
004 reply core_set core_get core_delete archival_write archival_search recall_append recall_search
004 reply recall_evict recall_summarize consolidate
"""
"""Operations of a model's reply, as its node's log has them."""
FIELDS = f"""
002 memory/memory_calls.jsonl ts op layer branch_id node_id phase
002 {PROMPT}/node_{GOOD}/memory_operations.jsonl timestamp stage label counter timing
002 {PROMPT}/node_{GOOD}/memory_operations.jsonl operations_count operations
002 {PROMPT}/node_{GOOD}/memory_injections.jsonl timestamp stage label task_hint budget_chars
002 {PROMPT}/node_{GOOD}/memory_injections.jsonl rendered_chars core_count recall_count
002 {PROMPT}/node_{GOOD}/memory_injections.jsonl archival_count timing
"""
TABLES = "002 table branches core_kv events archival archival_fts"
SECTIONS = """
002 prompt System Domain Environment Resources Phase_0_plan Memory Memory_Read_Results
004 prompt Memory_operations
"""
"""Sections of the prompt of a node that read its memory first."""
METHODS = """
004 core get set del
004 recall append search
004 archival write update search get
004 node fork read write
"""
FLAGS = "004 command enable_memgpt memory_db memory_max_compression_iterations"
KEYS = """
004 memory enabled memory_budget_chars core_max_chars recall_max_events retrieval_k
004 memory max_memory_read_rounds use_llm_compression auto_consolidate consolidation_trigger
004 memory recall_consolidation_threshold
"""
"""Keys of the configuration."""

ORDER = [
    "node_created", "phase1_complete", "coding_complete", "compile_complete", "run_complete",
    "metrics_extracted", "node_summary", "node_result",
]  # fmt: skip
QUESTIONS = {
    "two": ["plan", "attempt", "attempt", "assessment", "plotting", "vision"],
    "seeds": [
        "plan", "attempt", "attempt", "review memory", "review", "plotting", "vision memory",
        "vision", "summary memory", "summary",
    ],
}  # fmt: skip
"""The questions of a node in a way of asking, in order; it reads its memory once."""


@dataclass(frozen=True)
class Left:
    """A finished run, and what the memory holds."""

    made: Search
    desk: Desk
    store: MemoryManager

    @property
    def folder(self) -> Path:
        return self.made.places.folder

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def has_event(self, branch: str, kind: str) -> bool:
        own = "" if branch == "root" else branch
        found = self.store[branch].events()
        return any(e.kind == kind and e.data.get("node_id", "") == own for e in found)

    @cached_property
    def operations(self) -> set[str]:
        logged = self.lines(f"{PROMPT}/node_{GOOD}/memory_operations.jsonl")
        return {operation["type"] for line in logged for operation in line["operations"]}

    @cached_property
    def sections(self) -> set[str]:
        text = (self.folder / PROMPT / f"node_{GOOD}/debug_attempt1_round1.md").read_text()
        return {line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")}

    @cached_property
    def tables(self) -> set[str]:
        with closing(sqlite3.connect(self.made.places.memory)) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

    @cached_property
    def questions(self) -> list[str]:
        """What was asked of the last node that worked, without questions of the memory itself."""
        asked = [one for one in self.desk.asked if one.step not in {"stage summary", "other"}]
        steps = [f"{one.step} memory" if one.is_memory else one.step for one in asked]
        return steps[len(steps) - steps[::-1].index("plan") - 1 :]


@pytest.fixture(params=["seeds", "two"])
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Left]:
    """A whole run in a way of asking."""
    made, desk = seed_run(tmp_path, request.param)
    with MemoryManager(made.places.memory) as store:
        yield Left(made, desk, store)


def each(table: str) -> Iterator[tuple[str, str, str]]:
    """Return the document, the place and the name of each artefact."""
    for line in table.strip().splitlines():
        document, place, *names = line.split()
        yield from ((document, place, name) for name in names)


def missing(left: Left) -> list[tuple[str, ...]]:
    """Return the artefacts that are not there."""
    flags = {option.name for option in search_options.params}
    hints = {name: {i.task_hint for i in left.store[name].injections()} for name in left.store}
    logs = dict.fromkeys(log for _, log, _ in each(CALLS))
    calls = {log: {one["op"] for one in left.lines(f"memory/memory_{log}.jsonl")} for log in logs}
    fields: dict[str, Any] = {file: left.lines(file) for _, file, _ in each(FIELDS)}
    checks: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
        (FILES, lambda place, name: (left.folder / place / name).stat().st_size > 0),
        (EVENTS, left.has_event),
        (TAGS, lambda name, tag: bool(left.store.retrieve_archival(name, "", 50, [tag]))),
        (CORE, lambda name, key: bool(left.store.get_core(name, key))),
        (HINTS, lambda name, hint: hint in hints[name]),
        (CALLS, lambda log, operation: operation in calls[log]),
        (OPERATIONS, lambda _, name: name in left.operations),
        (FIELDS, lambda file, field: all(field in line for line in fields[file])),
        (TABLES, lambda _, name: name in left.tables),
        (SECTIONS, lambda _, name: name.replace("_", " ") in left.sections),
        (METHODS, lambda part, name: callable(getattr(left.store, f"mem_{part}_{name}"))),
        (FLAGS, lambda _, name: name in flags),
        (KEYS, lambda part, name: find(f"{part}.{name}") is not None),
    )
    return [row for table, holds in checks for row in each(table) if not holds(*row[1:])]


def test_a_run_leaves_the_artefacts_of_the_design_documents(left: Left) -> None:
    kinds = [node.kind for node in left.made.state.journal.nodes]
    assert kinds == ["draft"] * 4 + ["debug", "hyperparam", "improve", "ablation"]
    assert missing(left) == []
    assert left.questions == QUESTIONS["seeds" if "review" in left.questions else "two"]
    own = [e.kind for e in left.store[GOOD].events()[::-1] if e.data.get("node_id") == GOOD]
    assert [kind for kind in own if kind in ORDER] == ORDER
