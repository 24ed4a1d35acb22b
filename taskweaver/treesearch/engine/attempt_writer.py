"""The proposal of a node: its plan of Phase 0, then its files and commands."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.run.ingest import ingest_phase0_internal_info
from taskweaver.treesearch.agent.describe import attempt_lines
from taskweaver.treesearch.agent.events import storable
from taskweaver.treesearch.agent.phase0 import Phase0Plan, inherit_plan, save_plan, situation_of
from taskweaver.treesearch.agent.proposer import Proposer, Question
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.record.places import NodePlaces
from taskweaver.utils.files import write_json
from taskweaver.utils.redact import redact_secrets_in

_MOST_ATTEMPTS_SHOWN = 100


class ChangeClaims:
    """The change each node makes: of two nodes proposed at once, one alone makes a change."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Start with the changes of existing nodes."""
        self._lock = threading.Lock()
        self._taken = {_claim(node, node.name): node.id for node in nodes if node.name}

    def take(self, node: Node, name: str) -> str:
        """Claim a change for a node; return the id of the node that makes it already, or nothing.

        A change without a name cannot be claimed.
        """
        with self._lock:
            owner = self._taken.setdefault(_claim(node, name), node.id) if name else node.id
            return "" if owner == node.id else owner


def _claim(node: Node, name: str) -> tuple[str | None, bool, str]:
    """Return the key of a change: the same one may be tried to improve, and to take away."""
    return node.parent, node.kind is NodeKind.ABLATION, name


@dataclass(slots=True)
class AttemptWriter:
    """Writes the attempt of one node; its memory may be missing.

    `phase0` says which nodes ask for a plan first, see `SearchConfig`. `on_phase` is called with
    the node's id and the phase that begins.
    """

    question: Question
    proposer: Proposer
    places: NodePlaces
    memory: BranchHandle | None
    claims: ChangeClaims
    on_phase: Callable[[str, str], None]
    phase0: str
    _plan: Phase0Plan | None = None

    def write(self, node: Node) -> Node:
        """Return the node with its proposal; a seed evaluation has that of its parent.

        Raises:
            ReplyUnusable, ModelError: If there can be none.
        """
        parent = self.question.parent
        if node.kind is NodeKind.SEED and parent is not None:
            return replace(node, plan=parent.plan, artifacts=parent.artifacts, name=parent.name)
        self._plan = self._inherited() or self._planned()
        self.on_phase(node.id, "proposal")
        proposal = self.proposer.propose(self.question, self._plan, self.claims.take)
        shown = redact_secrets_in(proposal.artifacts.to_dict())
        write_json(self.places.phase_logs / "artifacts.json", shown)
        name = node.name or proposal.name
        return replace(node, plan=proposal.plan, name=name, artifacts=proposal.artifacts)

    def install_step(self, node: Node, progress: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the next command of the node's installer, see `Proposer.install_step`."""
        return self.proposer.install_step(self.question, self._plan, node.artifacts, progress)

    @property
    def dependencies(self) -> Mapping[str, Any]:
        """Packages that the plan of Phase 0 names."""
        return self._plan.dependencies if self._plan else {}

    @property
    def _situation(self) -> str:
        facts = self.question.background
        return situation_of(facts.environment, facts.compilers, facts.resources)

    def _inherited(self) -> Phase0Plan | None:
        """Return the parent's plan, where it holds for this node too."""
        parent = self.question.parent
        if self.phase0 != "draft" or parent is None:
            return None
        of_parent = NodePlaces(self.places.run_dir, parent.id)
        return inherit_plan(of_parent, self.places, self._situation)

    def _planned(self) -> Phase0Plan | None:
        """Return the plan of Phase 0, written to the node's folder; None is no failure."""
        if self.phase0 == "off":
            return None
        self.on_phase(self.question.node.id, "plan")
        try:
            plan, raw = self.proposer.plan(self.question)
        except ReplyUnusable:
            return None
        journal = self.question.journal
        others = attempt_lines(journal, journal.finished[-_MOST_ATTEMPTS_SHOWN:])
        history = {**self.question.background.earlier, "attempts": others}
        save_plan(self.places.plans, plan, raw, history, self._situation)
        for file in self.places.prompt_logs.glob("phase0_attempt*_round0.*"):
            self.places.prompts.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self.places.prompts / f"phase0_prompt{file.suffix}")
        if self.memory is not None:
            ingest_phase0_internal_info(self.memory, storable(plan.to_dict()))
        return plan
