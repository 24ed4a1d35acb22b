"""Events of a run in its memory: one for each step of a node and of a stage.

The kinds and tags are those of the original, so that readers of them keep working. Without a memory
nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.tiers.core import RESERVED
from taskweaver.memory.memory import NoLog
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.utils import encodable
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, Objective, PhaseOutcome
from taskweaver.treesearch.model.stages import StageState

_PLAN_CHARS = 1200
_TEXT_CHARS = 500
_GIST_CHARS = 300
_PHASE_NAMES = {"download": "phase1"}


_SHOWN_KEYS = frozenset(
    {
        "idea_md_summary", "phase0_summary", "last_vlm_analysis", "hardware_cpu", "hardware_gpu",
        "hardware_os", "hardware_compiler", "hardware_tools",
    }
)  # fmt: skip
_SHOWN_ELSEWHERE = frozenset(
    {
        *_SHOWN_KEYS, *(f"core_key:{key}" for key in _SHOWN_KEYS),
        "IDEA_MD", "ENVIRONMENT", "PHASE0_INTERNAL", "METRICS", "STAGE_PROGRESSION",
        "STAGE_COMPLETE", "FINDINGS", "GOAL", "goal_generated", "node_created", "phase1_complete",
        "phase1_failed", "coding_complete", "coding_failed", "compile_complete", "compile_failed",
        "run_complete", "run_failed", "metrics_extracted", "metrics_failed",
        "vlm_analysis_complete", "node_summary", "node_result", "substage_complete",
        "substage_incomplete", "stage2_complete", "stage4_complete", "stage_progression",
    }
)  # fmt: skip
"""Core keys, tags of records and kinds of events: prompts have idea, machine, plan and goals in
sections of their own; the outcome of an attempt is in the event of its round, and of a stage in
that of its summary."""

ON_THE_BOARD = frozenset({"round", "lesson_promoted"})
"""Kinds of events that prompts show as attempts and lessons of the board."""


def shown_elsewhere(node: Node | None = None, untrue: Iterable[str] = ()) -> frozenset[str]:
    """Return the keys, tags and kinds that prompts show in sections of their own.

    Those of a node show the round of its parent, and the lessons of others on the board. What is
    kept of attempts whose findings are `untrue` is not shown anywhere.
    """
    if node is None:
        return _SHOWN_ELSEWHERE
    ids = [id_ for id_ in (node.id, node.parent, *untrue) if id_]
    of_nodes = {mark for id_ in ids for mark in (f"node:{id_}", f"node_uid:{id_}")}
    return _SHOWN_ELSEWHERE | of_nodes | ON_THE_BOARD


class NodeEvents(NoLog):
    """Writes the events and the conversation of one node to a branch; the log of a `Memory`.

    Writes that belong together are committed at once: a write that waits goes with the next one.
    """

    def __init__(self, store: BranchedMemory | None, branch: str, objective: Objective) -> None:
        """Prepare to write; without a store or a branch, nothing is written."""
        self._store = store = store if branch else None  # a run may get its memory on resuming
        self._objective = objective
        self._branch = store[branch] if store else None
        self._log = BranchLog(store, branch) if store else NoLog()
        self._waiting: list[Callable[[], object]] = []

    def _write(self, write: Callable[[], object], *, waits: bool = False) -> None:
        self._waiting.append(write)
        if waits:
            return
        writes, self._waiting = self._waiting, []
        if self._store is not None:
            self._store.together(lambda: [write() for write in writes])

    def round_started(self, round_: Round) -> None:
        """Write a new round, together with its first post."""
        self._write(partial(self._log.round_started, round_), waits=True)

    def post_added(self, round_: Round, post: Post) -> None:
        """Write a post; the answer to the user is written together with the end of the round."""
        self._write(partial(self._log.post_added, round_, post), waits=post.send_to == "User")

    def round_ended(self, round_: Round) -> None:
        """Write how a round ended."""
        self._write(partial(self._log.round_ended, round_))

    def _note(
        self,
        node: Node,
        kind: str,
        text: str,
        records: list[dict[str, Any]] | None = None,
        core: Mapping[str, str] | None = None,
        *,
        waits: bool = False,
    ) -> None:
        if self._branch is None:
            return
        event = {"kind": kind, "summary": text, "node_id": node.id, "phase": node.kind.value}
        of_event = {"event": storable(event), "records": storable(records or [])}
        self._write(partial(self._branch.write, core=core, **of_event), waits=waits)

    def created(self, node: Node, label: str, loss: str) -> None:
        """Note that a node was made, and the losses from its parent, together with its round."""
        text = f"stage={label} node_id={node.id} kind={node.kind}\n{loss}".strip()
        text = f"{text}\n{node.plan[:_PLAN_CHARS]}".strip()
        self._note(node, "node_created", text, waits=True)

    def phase(self, node: Node, outcome: PhaseOutcome) -> None:
        """Note how a phase ended, together with the report; a compile failure is a record too."""
        if outcome.status == "skipped":
            return
        name = _PHASE_NAMES.get(outcome.name, outcome.name)
        kind = f"{name}_{'failed' if outcome.has_failed else 'complete'}"
        text = outcome.message[:_TEXT_CHARS] or f"{outcome.seconds:.1f} s"
        records = []
        if outcome.has_failed and outcome.name == "compile":
            tags = ["ERROR", "COMPILE", f"node:{node.id}"]
            records.append({"text": f"compile failed: {outcome.message}", "tags": tags})
        self._note(node, kind, text, records, waits=True)

    def metrics(self, node: Node, problem: str = "") -> None:
        """Note that a metric was found, or why not."""
        if problem or node.metric is None:
            self._note(node, "metrics_failed", problem[:_TEXT_CHARS] or "there is no metric")
            return
        text = f"{self._objective.name}: {self._objective.text(node.value)}"
        values = ", ".join(
            f"{name or 'all'}={value:g}" for name, value in node.metric.values.items()
        )
        tags = ["METRICS", f"node_uid:{node.id}", f"stage:{node.stage}"]
        self._note(node, "metrics_extracted", text, [{"text": f"{text} ({values})", "tags": tags}])

    def looked_at(self, node: Node, text: str) -> None:
        """Note the description of the plots."""
        tags = ["VLM_ANALYSIS", f"node:{node.id}"]
        core = {"last_vlm_analysis": f"node:{node.id}, plots:{len(node.plots)}"}
        records = [{"text": text, "tags": tags}]
        self._note(node, "vlm_analysis_complete", text[:_TEXT_CHARS], records, core)

    def summary(self, node: Node) -> None:
        """Note the summary."""
        text = "\n".join(f"{name}: {value}" for name, value in node.summary.items() if value)
        findings = node.summary.get("findings") or text
        tags = ["NODE_SUMMARY", f"node_uid:{node.id}", f"stage:{node.stage}"]
        self._note(node, "node_summary", findings[:200], [{"text": text, "tags": tags}])

    def core(self) -> dict[str, str]:
        """Return the core keys of the node with their values."""
        return {} if self._branch is None else dict(self._branch.core)

    def refuted(self, node: Node, names: Iterable[str], known: Mapping[str, str]) -> None:
        """Note that a review found findings untrue, and hide core keys among the names.

        Ancestors keep their keys. Those that the run writes itself stay, and so do those with
        another value than was `known` before the review: it wrote what is true now.
        """
        core = {} if self._branch is None else self._branch.core
        own = _SHOWN_KEYS | {*RESERVED}
        there = [key for key in names if key in core and key not in own]
        keys = [key for key in there if core[key] == known.get(key)]
        for key in keys:
            del core[key]
        if node.refutes or keys:
            text = f"{node.id} found untrue: {', '.join((*node.refutes, *keys))}"
            self._note(node, "findings_refuted", text)

    def result(self, node: Node) -> None:
        """Note the outcome of a node, together with the answer to the user."""
        value = self._objective.text(node.value)
        failure = f" exc_type={node.error.kind}" if node.error else ""
        text = f"node_id={node.id} metric={value} is_buggy={node.has_failed}{failure}"
        records = []
        if node.is_good:
            again = f" (the program of {node.same_as} again)" if node.same_as else ""
            lesson = f"{node.kind} {node.name}: {self._objective.name} {value}{again}. {node.plan}"
            tags = ["SUCCESS", f"node_uid:{node.id}", f"stage:{node.stage}"]
            records.append({"text": lesson.strip()[:_PLAN_CHARS], "tags": tags})
        elif node.error is not None:
            lesson = f"{node.kind} {node.name} failed: {node.error.kind}: {node.error.message}"
            tags = ["ERROR", f"node_uid:{node.id}"]
            records.append({"text": lesson[:_PLAN_CHARS], "tags": tags})
        self._note(node, "node_result", text, records, waits=True)


class RunEvents:
    """Writes the events of the whole run to its root, once each."""

    def __init__(self, store: BranchedMemory | None, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    def _note(
        self,
        kind: str,
        mark: str,
        text: str,
        tags: list[str] | None = None,
        nodes: int | None = None,
    ) -> bool:
        """Write an event, and return whether it was new.

        A run that is resumed comes by again, with as many nodes as before; one that is opened
        again, with more of them.
        """
        root = self._store.root if self._store else None
        if root is None:
            return False
        is_of = {"mark": mark, "nodes": len(self._journal) if nodes is None else nodes}
        if _is_noted(root, kind, is_of):
            return False
        records = [{"text": text, "tags": tags}] if tags else []
        event = {"kind": kind, "summary": text[:2000], **is_of}
        root.write(event=storable(event), records=storable(records))
        return True

    def _count(self, state: StageState) -> int:
        """Return the number of nodes of a stage and those before; later ones may have begun."""
        return sum(node.stage <= state.stage.number for node in self._journal.nodes)

    def substage_ended(self, state: StageState, reason: str, *, is_complete: bool) -> None:
        """Note that a substage is over."""
        kind = f"substage_{'complete' if is_complete else 'incomplete'}"
        number = state.stage.number
        tags = ["STAGE_COMPLETE", f"stage:{number}"] if is_complete else None
        self._note(kind, state.label, f"{state.label}: {reason}", tags, self._count(state))

    def stage_ended(self, state: StageState, reason: str, tested: str) -> None:
        """Note that a stage is over; of the second and the fourth, the tested variants."""
        number = state.stage.number
        names = {2: "DATASETS_TESTED", 4: "ABLATIONS"}
        if number in names:
            tags = ["STAGE_COMPLETE", f"stage:{number}", names[number]]
            kind, text = f"stage{number}_complete", tested or reason
            self._note(kind, state.stage.label, text, tags, self._count(state))

    def judged(self, state: StageState, after: int, text: str) -> None:
        """Note that another node is carried on than the one the metric puts first."""
        tags = ["BEST_NODE", f"stage:{state.stage.number}"]
        self._note("best_node_judged", f"{state.label}:{after}", text, tags, self._count(state))

    def goal_generated(self, state: StageState) -> None:
        """Note the goals of a substage."""
        tags = ["GOAL", f"substage:{state.substage}"]
        self._note("goal_generated", state.label, state.goals, tags, nodes=state.first)

    def progressed(self, old: StageState, new: StageState | None, reason: str) -> None:
        """Note that the run goes on to the next stage."""
        target = new.stage.label if new else "the end"
        text = f"{old.stage.label} -> {target}: {reason}"
        tags = ["STAGE_PROGRESSION", f"stage:{old.stage.number}"]
        self._note("stage_progression", old.stage.label, text, tags, self._count(old))

    def stage_summary(self, state: StageState, summary: str) -> None:
        """Note the summary of a stage."""
        tags = ["SUMMARY", f"stage:{state.stage.number}", "FINDINGS"]
        self._note("stage_summary", state.stage.label, summary, tags, self._count(state))

    def lesson(self, best: Node) -> None:
        """Promote the lesson of a stage's best node to the root, where every attempt sees it."""
        root = self._store.root if self._store else None
        if self._store is None or root is None or not best.branch:
            return
        is_untrue = best.id in self._journal.refuted
        if is_untrue or _is_noted(root, "lesson_promoted", {"mark": best.id}):
            return
        for tag in ("NODE_SUMMARY", "SUCCESS"):
            mark, branch = f"node_uid:{best.id}", self._store[best.branch]
            for record in branch.search("", 1, tags=[mark, tag]):
                copy = branch.promote(record.id, root.id)
                gist = record.text[:_GIST_CHARS]
                text = f"Lesson of {best.id} (archival record #{copy}, tag {mark}): {gist}"
                self._note("lesson_promoted", best.id, text, nodes=0)
                return

    def journal_summary(self) -> None:
        """Note the outcome of the whole run, when it ends."""
        journal = self._journal
        best = journal.best()
        reached = f"{best.id}, {journal.objective.text(best.value)}" if best else "none"
        text = (
            f"{len(journal)} nodes, {len(journal.good)} good, {len(journal.buggy)} failed."
            f" Best: {reached}."
        )
        self._note("journal_summary", "run", text)


def _is_noted(root: BranchHandle, kind: str, is_of: Mapping[str, Any]) -> bool:
    """Return whether a branch has an event of a kind with these data, once or repeated."""
    return any(
        is_of.items() <= each.data.items()
        for noted in root.events()
        if noted.kind == kind
        for each in root.occurrences(noted.seq)
    )


def storable(data: Any) -> Any:
    """Return plain data with the characters a memory refuses replaced.

    Models and programs write any characters; halves of surrogate pairs and NUL are no reason to
    lose a text.
    """
    if isinstance(data, str):
        text = data if data.isascii() else str(encodable(data))
        return text.replace("\0", "\ufffd")
    if isinstance(data, Mapping):
        return {str(storable(key)): storable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [storable(item) for item in data]
    return data
