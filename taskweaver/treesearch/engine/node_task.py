"""The work on one node, in six steps: branch, prompt, memory, proposal, phases, result.

It runs in a thread of the coordinator, which thinks and owns the memory; commands run in a worker
process, or in a kernel.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.run.ingest import ingest_phase0_internal_info
from taskweaver.treesearch.agent.describe import attempt_lines
from taskweaver.treesearch.agent.events import NodeEvents, shown_elsewhere, storable
from taskweaver.treesearch.agent.node_agent import FATAL, NodeAgent, NodeMemory
from taskweaver.treesearch.agent.phase0 import save_plan
from taskweaver.treesearch.agent.proposer import Proposer, Question
from taskweaver.treesearch.agent.reviewer import Reviewer, measured
from taskweaver.treesearch.agent.toolbox import Toolbox
from taskweaver.treesearch.agent.transcript import NodeTranscript
from taskweaver.treesearch.engine.node_executor import NodeExecutor, WorkCancelled
from taskweaver.treesearch.engine.plotting import Plotter
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.scripts import REPLAY_ERROR
from taskweaver.treesearch.model.budget import BudgetSpent
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Cost, Node, NodeError, NodeKind, NodeStatus
from taskweaver.treesearch.model.stages import StageState
from taskweaver.utils.files import write_json
from taskweaver.utils.redact import redact_secrets_in

_OUTPUT_CHARS = 20_000
_MOST_TOLD = 100


class NodeTask:
    """The work on one node."""

    def __init__(self, tools: Toolbox, journal: Journal, state: StageState, node: Node) -> None:
        """Get ready.

        Args:
            tools: What all nodes share.
            journal: All nodes.
            state: The stage.
            node: The node, as it begins.
        """
        self._tools = tools
        self._journal = journal
        self._state = state
        parent = journal[node.parent] if node.parent else None
        if parent is not None and tools.scripts is not None:
            node = replace(node, line=tools.scripts.line(node, parent))
        self._node = node
        self._places = tools.places.node(node.id)
        self._events = NodeEvents(tools.store, journal.objective)
        self._api = LLMApi(tools.services)
        self._planned: Mapping[str, Any] = {}
        self._carrier = NodeExecutor(tools, journal, node, self._check)
        self._question = Question(
            node=node,
            parent=parent,
            idea=tools.idea,
            state=state,
            journal=journal,
            environment=tools.environment,
            resources=tools.materials.text(),
            history=tools.history[1],
            compilers=tools.compilers,
            run_seconds=tools.config.limits.run_s,
            has_memory=tools.store is not None,
            is_script=tools.scripts is not None,
            is_forked=bool(node.line),
            loss=self._carrier.loss,
        )

    def cancel(self) -> None:
        """Give the work up, from any thread."""
        self._api.close()
        self.cut_off()

    def cut_off(self) -> None:
        """End the command it waits for, since the time of the run is over; from any thread."""
        self._carrier.cut_off()

    def run(self) -> Node:
        """Do it; return the node as it ended.

        Raises:
            WorkCancelled: If it was given up.
            BudgetSpent: If it cannot be finished within what the run may spend.
            WorkerLost: If its worker died; the node may be tried again.
            ModelError: If no call to the model can succeed, now or later.
            SearchError: If the run cannot go on.
        """
        node = self._node
        self._events.created(node, self._state.label, self._question.loss)
        talk = NodeTranscript(self._tools.store, node, self._tools.idea.title)
        agent = self._agent()
        try:
            node = self._propose(node, Proposer(self._tools.prompts, agent))
            talk.proposed(node)
            node, result = self._execute(node, Proposer(self._tools.prompts, agent))
            talk.ran(node)
            node = self._judge(node, result, agent)
        except ReplyUnusable as error:
            node = _failed(node, NodeError("PhasePlanError", str(error)))
        except ModelError as error:
            if self._api.is_interrupted:
                raise WorkCancelled("It was stopped.") from error
            if error.kind in FATAL:
                raise
            node = _failed(node, NodeError("ModelError", str(error)))
        node = replace(node, finished_at=time.time(), cost=self._cost())
        self._events.result(node)
        talk.ended(node, self._journal.objective)
        return node

    def _agent(self) -> NodeAgent:
        store = self._tools.store
        folder = self._places.prompt_logs
        log = MemoryPromptLog(folder, stage=self._state.label)
        hidden = shown_elsewhere(self._node)
        memory = NodeMemory(store[self._node.branch], log, hidden) if store else None
        return NodeAgent(
            self._api,
            self._node.id,
            folder,
            self._tools.prompts.text("core/system"),
            memory,
            self._tools.config.asking,
        )

    def _check(self) -> None:
        """Raise why nothing more may be begun."""
        if self._api.is_interrupted:
            raise WorkCancelled("It was stopped.")
        self._tools.budget.check()

    def _propose(self, node: Node, proposer: Proposer) -> Node:
        """Plan, and write the attempt; a seed evaluation takes its parent's over."""
        if node.kind is NodeKind.SEED and self._question.parent is not None:
            parent = self._question.parent
            return replace(node, plan=parent.plan, artifacts=parent.artifacts, name=parent.name)
        plan = self._planned = self._plan(proposer) if self._tools.config.has_phase0 else {}
        self._tools.on_phase(node.id, "proposal")
        proposal = proposer.propose(self._question, plan, self._tools.claims.take)
        shown = redact_secrets_in(dict(proposal.artifacts))
        write_json(self._places.phase_logs / "artifacts.json", shown)
        name = node.name or proposal.name
        return replace(node, plan=proposal.plan, name=name, artifacts=proposal.artifacts)

    def _plan(self, proposer: Proposer) -> Mapping[str, Any]:
        """Phase 0: a plan that is written before anything else; none is no failure."""
        self._tools.on_phase(self._node.id, "plan")
        try:
            plan, raw = proposer.plan(self._question)
        except ReplyUnusable:
            return {}
        others = attempt_lines(self._journal, self._journal.finished[-_MOST_TOLD:])
        history = {**self._tools.history[0], "attempts": others}
        save_plan(self._places.plans, plan, raw, history)
        for file in self._places.prompt_logs.glob("phase0_attempt*_round0.*"):
            self._places.prompts.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self._places.prompts / f"phase0_prompt{file.suffix}")
        if self._tools.store is not None:
            known = storable(plan)
            ingest_phase0_internal_info(self._tools.store[self._node.branch], known)
        return plan

    def _execute(self, node: Node, proposer: Proposer) -> tuple[Node, JobResult]:
        ask = partial(proposer.install_step, self._question, self._planned, node.artifacts or {})
        needs = self._planned.get("dependencies", {})
        result = self._carrier.execute(node, ask, needs)
        if result.error is not None and result.error.kind == REPLAY_ERROR:
            node = replace(node, line=())  # so that mending it begins with nothing
        node = replace(
            node,
            phases=result.phases,
            error=result.error,
            output=result.output[-_OUTPUT_CHARS:],
            exec_seconds=result.exec_seconds,
        )
        return node, result

    def _judge(self, node: Node, result: JobResult, agent: NodeAgent) -> Node:
        """Measure, review, draw and sum up."""
        tools, journal = self._tools, self._journal
        reviewer = Reviewer(tools.prompts, agent, tools.idea.text)
        asks = not tools.is_embedded and node.kind is not NodeKind.SEED
        if node.error is None:
            node = self._measure(node, result, reviewer, asks=asks)
        if asks and tools.config.has_review:
            tools.on_phase(node.id, "review")
            node = self._reviewed(node, reviewer)
        if node.error is not None:
            node = _failed(node, node.error)
        else:
            node = replace(node, status=NodeStatus.OK, time_feedback=self._time_feedback(node))
            if asks and tools.config.has_plots:
                tools.on_phase(node.id, "plots")
                node = self._plotter(node, reviewer).draw(node, journal, result)
        if asks and tools.config.has_summaries:
            tools.on_phase(node.id, "summary")
            # An attempt that ran is not worse for want of words.
            with suppress(ReplyUnusable, BudgetSpent):
                node = replace(node, summary=reviewer.summary(node, journal))
                self._events.summary(node)
        return node

    def _plotter(self, node: Node, reviewer: Reviewer) -> Plotter:
        job, alias = self._carrier.job(node), self._tools.config.vlm_alias
        return Plotter(self._places, self._events, reviewer, job, self._carrier.run, alias)

    def _reviewed(self, node: Node, reviewer: Reviewer) -> Node:
        """Have an attempt judged; where nobody can, its figures stand."""
        try:
            review = reviewer.review(node, self._journal)
        except (ReplyUnusable, BudgetSpent) as error:
            return replace(node, analysis=f"It was not reviewed: {error}")
        node = replace(node, analysis=review.summary)
        if review.is_bug and node.error is None:
            node = replace(node, error=NodeError("ReviewError", review.summary))
        return node

    def _measure(self, node: Node, result: JobResult, reviewer: Reviewer, *, asks: bool) -> Node:
        metric = measured(result.result)
        if metric is None and asks:
            with suppress(ReplyUnusable):  # then there is none
                metric = reviewer.metric(node, self._journal, result)
        problem = ""
        if metric is None:
            problem = "the run measured nothing: working/result.json holds no metric"
        elif metric.value is None:
            problem = f"the metric is no finite number: {dict(metric.values)}"
        else:
            metric, problem = self._journal.comparable(metric)
        names = tuple(name for name in metric.values if name) if metric else ()
        node = replace(node, metric=metric, datasets=names)
        self._events.metrics(node, problem)
        return replace(node, error=NodeError("MetricError", problem)) if problem else node

    def _time_feedback(self, node: Node) -> str:
        """Say when a run of the third stage leaves most of its time unused."""
        limit = self._tools.config.limits.run_s
        if node.stage != 3 or node.exec_seconds > limit / 2:
            return ""
        return (
            f"The run took {node.exec_seconds:.0f} s of {limit:.0f} s: there is time for more data,"
            " more repetitions or a larger model, where that helps."
        )

    def _cost(self) -> Cost:
        used = self._api.usage
        if self._tools.is_embedded:
            return Cost(used.calls)
        return Cost(used.calls, used.prompt_tokens, used.completion_tokens, used.cost)


def _failed(node: Node, error: NodeError) -> Node:
    status = NodeStatus.TIMEOUT if error.kind == "TimeoutError" else NodeStatus.BUGGY
    return replace(node, status=status, error=error)
