"""The proposal of a node: its plan of Phase 0, then its files and commands."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.run.ingest import ingest_phase0_internal_info
from taskweaver.treesearch.agent.describe import attempt_lines
from taskweaver.treesearch.agent.events import storable
from taskweaver.treesearch.agent.phase0 import Phase0Plan, inherit_plan, save_plan, situation_of
from taskweaver.treesearch.agent.proposer import Proposer, Question
from taskweaver.treesearch.engine.change_claims import ChangeClaims
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus
from taskweaver.treesearch.record.places import NodePlaces
from taskweaver.utils.files import write_json
from taskweaver.utils.redact import redact_secrets_in

_MOST_ATTEMPTS_SHOWN = 100


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

        It is skipped if it proposed nothing but a program that another attempt runs.

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
        owner = self.claims.owner(node)
        node = replace(
            node,
            plan=proposal.plan,
            name=node.name or proposal.name,
            artifacts=proposal.artifacts,
            same_as=owner,
            seed=self._unused_seed(owner) if owner else node.seed,
            status=NodeStatus.SKIPPED if self.claims.is_skipped(node) else node.status,
        )
        self.question.journal.note_proposal(node)
        return node

    def _unused_seed(self, owner: str) -> int:
        """Return a seed with which a program was not measured yet."""
        journal = self.question.journal
        return 1 + max(run.seed for run in (journal[owner], *journal.repetitions(owner)))

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
        planned = "; ".join(filter(None, (plan.goal_summary, *plan.implementation_strategy)))
        journal.note_proposal(replace(self.question.node, plan=planned))
        others = attempt_lines(journal, journal.finished[-_MOST_ATTEMPTS_SHOWN:])
        history = {**self.question.background.earlier, "attempts": others}
        save_plan(self.places.plans, plan, raw, history, self._situation)
        for file in self.places.prompt_logs.glob("phase0_attempt*_round0.*"):
            self.places.prompts.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self.places.prompts / f"phase0_prompt{file.suffix}")
        if self.memory is not None:
            ingest_phase0_internal_info(self.memory, storable(plan.to_dict()))
        return plan
