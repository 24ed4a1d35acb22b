"""The work on one node, in six steps: branch, prompt, memory, proposal, phases, result.

It runs in a thread of the coordinator, which thinks and owns the memory; commands run in a worker
process, or in a kernel.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.memory.branched.injections import PromptLog
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.events import NodeEvents, storable
from taskweaver.treesearch.execution import run_download_command, run_job
from taskweaver.treesearch.installing import install
from taskweaver.treesearch.job import PHASES, Job, JobResult
from taskweaver.treesearch.journal import Journal
from taskweaver.treesearch.node import Cost, Node, NodeError, NodeKind, NodeStatus
from taskweaver.treesearch.phase0 import save_plan
from taskweaver.treesearch.plotting import Plotter
from taskweaver.treesearch.proposing import Proposer, Question
from taskweaver.treesearch.reviewing import Reviewer, measured
from taskweaver.treesearch.scripts import REPLAY_ERROR, Script, ScriptRunner, program_of
from taskweaver.treesearch.stages import StageState
from taskweaver.treesearch.talk import NodeTalk
from taskweaver.treesearch.thinking import MemorySeat, ReplyUnusable, Thinker
from taskweaver.treesearch.toolbox import Toolbox
from taskweaver.utils.files import write_json

_FATAL = frozenset({"auth", "quota", "configuration", "not_found", "cancelled"})
_OUTPUT_CHARS = 20_000
_GRACE_S = 60.0
_LOSS = (
    "There is no folder of the parent to take over. The files that it and those before it proposed"
    " are written anew; what was downloaded, built or computed there is not."
)
T = TypeVar("T")


class WorkCancelled(SearchError):
    """The search was stopped while a node was worked on."""


class NodeWork:
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
        if tools.scripts is not None and parent is not None:
            node = replace(node, line=tools.scripts.line(node, parent))
        self._node = node
        self._places = tools.places.node(node.id)
        self._events = NodeEvents(tools.store, journal.objective)
        self._api = LLMApi(tools.services)
        self._future: Future[Any] | None = None
        self._is_cancelled = threading.Event()
        self._planned: Mapping[str, Any] = {}
        self._parent_workspace, self._inherited = self._takes_over(parent)
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
            loss=_LOSS if self._inherited else "",
        )

    def cancel(self) -> None:
        """Give the work up, from any thread."""
        self._is_cancelled.set()
        self._api.cancel()
        if self._future is not None:
            self._future.cancel()
        if self._tools.scripts is not None:
            self._tools.scripts.give_up(self._node.id)

    def run(self) -> Node:
        """Do it; return the node as it ended.

        Raises:
            WorkCancelled: If it was given up.
            WorkerLost: If its worker died; the node may be tried again.
            ModelError: If no call to the model can succeed, now or later.
            SearchError: If the run cannot go on.
        """
        node = self._node
        self._events.created(node, self._state.label, self._question.loss)
        talk = NodeTalk(self._tools.store, node, self._tools.idea.title)
        thinker = self._thinker()
        try:
            node = self._propose(node, Proposer(self._tools.prompts, thinker))
            talk.proposed(node)
            node, result = self._execute(node, Proposer(self._tools.prompts, thinker))
            talk.ran(node)
            node = self._judge(node, result, thinker)
        except ReplyUnusable as error:
            node = _failed(node, NodeError("PhasePlanError", str(error)))
        except ModelError as error:
            if self._is_cancelled.is_set():
                raise WorkCancelled("It was stopped.") from error
            if error.kind in _FATAL:
                raise
            node = _failed(node, NodeError("ModelError", str(error)))
        node = replace(node, finished_at=time.time(), cost=self._cost())
        self._events.result(node)
        talk.ended(node, self._journal.objective)
        return node

    def _thinker(self) -> Thinker:
        store = self._tools.store
        folder = self._places.prompt_logs
        seat = MemorySeat(store, self._node.branch, PromptLog(folder)) if store else None
        return Thinker(
            self._api,
            self._node.id,
            folder,
            self._tools.prompts.text("core/system"),
            seat,
            self._tools.config.asking,
            self._before_call,
        )

    def _before_call(self) -> None:
        if self._is_cancelled.is_set():
            raise WorkCancelled("It was stopped.")
        self._tools.before_call()

    def _propose(self, node: Node, proposer: Proposer) -> Node:
        """Plan, and write the attempt; a seed evaluation takes its parent's over."""
        if node.kind is NodeKind.SEED and self._question.parent is not None:
            parent = self._question.parent
            return replace(node, plan=parent.plan, artifacts=parent.artifacts, name=parent.name)
        plan = self._planned = self._plan(proposer) if self._tools.config.has_phase0 else {}
        self._tools.on_phase(node.id, "proposal")
        proposal = proposer.propose(self._question, plan, self._tools.claims.take)
        write_json(self._places.phase_logs / "artifacts.json", dict(proposal.artifacts))
        name = node.name or proposal.name
        return replace(node, plan=proposal.plan, name=name, artifacts=proposal.artifacts)

    def _plan(self, proposer: Proposer) -> Mapping[str, Any]:
        """Phase 0: a plan that is written before anything else; none is no failure."""
        self._tools.on_phase(self._node.id, "plan")
        try:
            plan, raw = proposer.plan(self._question)
        except ReplyUnusable:
            return {}
        save_plan(self._places.plans, plan, raw, self._tools.history[0])
        for file in self._places.prompt_logs.glob("phase0_attempt*_round0.*"):
            self._places.prompts.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self._places.prompts / f"phase0_prompt{file.suffix}")
        if self._tools.store is not None and plan.get("internal"):
            known = storable(plan)
            self._tools.store.ingest_phase0_internal_info(known, branch_id=self._node.branch)
        return plan

    def _execute(self, node: Node, proposer: Proposer) -> tuple[Node, JobResult]:
        if self._tools.scripts is not None:
            result = self._run_script(node, self._tools.scripts)
            if result.error is not None and result.error.kind == REPLAY_ERROR:
                node = replace(node, line=())  # so that mending it begins with nothing
        else:
            result = self._run_phases(node, proposer)
        result = self._with_loss(self._without_host_paths(result))
        for outcome in result.phases:
            self._events.phase(node, outcome)
        node = replace(
            node,
            phases=result.phases,
            error=result.error,
            output=result.output[-_OUTPUT_CHARS:],
            exec_seconds=result.exec_seconds,
        )
        return node, result

    def _without_host_paths(self, result: JobResult) -> JobResult:
        """Name the workspace as prompts do; where it is on this machine is nobody's concern."""
        here = str(self._places.workspace)

        def told(text: str) -> str:
            return text.replace(here, "/workspace")

        error = result.error
        phases = (replace(phase, message=told(phase.message)) for phase in result.phases)
        return replace(
            result,
            phases=tuple(phases),
            error=error and replace(error, message=told(error.message)),
            output=told(result.output),
        )

    def _with_loss(self, result: JobResult) -> JobResult:
        """Keep with the phases what was not there when they began."""
        if not self._question.loss or not result.phases:
            return result
        first, *others = result.phases
        told = replace(first, message=f"{self._question.loss} {first.message}")
        return replace(result, phases=(told, *others))

    def _run_script(self, node: Node, scripts: ScriptRunner) -> JobResult:
        self._tools.on_phase(node.id, "run")
        before = tuple(program_of(self._journal[id_]) for id_ in node.line)
        log = self._places.phase_logs / "run.log"
        result = scripts.run(Script(program_of(node), self._places.workspace, log, before))
        if self._is_cancelled.is_set():
            raise WorkCancelled("It was stopped.")
        return result

    def _run_phases(self, node: Node, proposer: Proposer) -> JobResult:
        try:
            job = self._tools.materials.prepared(self._job(node))
        except SearchError as error:
            return JobResult(error=NodeError("DownloadError", str(error)))
        if not self._has_installer(job, node):
            self._tools.on_phase(node.id, "phases")
            return self._submit(run_job, job)
        self._tools.on_phase(node.id, "download")
        ask = partial(proposer.install_step, self._question, self._planned, job.artifacts)
        run = partial(self._submit, run_download_command, job)
        first = install(job, ask, run, self._tools.config.install_steps)
        if first.error is not None:
            return first
        self._tools.on_phase(node.id, "phases")
        rest = self._submit(run_job, replace(job, phases=PHASES[1:], parent_workspace=None))
        return replace(rest, phases=first.phases + rest.phases)

    def _has_installer(self, job: Job, node: Node) -> bool:
        """Return whether the model installs step by step: where there is something to install."""
        is_asked = self._tools.config.is_iterative and not self._tools.is_embedded
        wanted = (job.artifacts.get("download") or {}).get("commands")
        return is_asked and bool(wanted) and node.kind is not NodeKind.SEED

    def _job(self, node: Node) -> Job:
        return Job(
            run_dir=self._tools.places.folder,
            node_id=node.id,
            workspace=self._places.workspace,
            log_dir=self._places.phase_logs,
            artifacts=node.artifacts or {},
            parent_workspace=self._parent_workspace,
            inherited=self._inherited,
            seed=node.seed,
            limits=self._tools.config.limits,
            sandbox=self._tools.sandbox,
        )

    def _takes_over(self, parent: Node | None) -> tuple[Path | None, tuple[Mapping[str, Any], ...]]:
        """Return the folder whose files the node takes over, or else the plans that had them."""
        if parent is None or self._tools.scripts is not None:
            return None, ()
        workspace = self._tools.places.node(parent.id).workspace
        if workspace.is_dir():
            return workspace, ()
        path = self._journal.path(parent.id)
        return None, tuple(node.artifacts for node in path if node.artifacts)

    def _submit(self, function: Callable[..., T], *arguments: Any) -> T:
        """Have a worker do something, and wait for it."""
        limits = self._tools.config.limits
        deadline_s = 4 * (limits.download_s + limits.compile_s + limits.run_s) + _GRACE_S
        if self._is_cancelled.is_set():
            raise WorkCancelled("It was stopped.")
        future = self._tools.workers.submit_within(deadline_s, function, *arguments)
        self._future = future
        if self._is_cancelled.is_set():  # it came too late for `cancel` to see it
            future.cancel()
        try:
            return future.result()
        except CancelledError as error:
            raise WorkCancelled("It was stopped.") from error

    def _judge(self, node: Node, result: JobResult, thinker: Thinker) -> Node:
        """Measure, review, draw and sum up."""
        tools, journal = self._tools, self._journal
        reviewer = Reviewer(tools.prompts, thinker, tools.idea.text)
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
                submit = partial(self._submit, run_job)
                plotter = Plotter(
                    self._places,
                    self._events,
                    reviewer,
                    self._job(node),
                    submit,
                    tools.config.vlm_alias,
                )
                node = plotter.draw(node, journal, result)
        if asks and tools.config.has_summaries:
            tools.on_phase(node.id, "summary")
            with suppress(ReplyUnusable):  # an attempt that ran is not worse for want of words
                node = replace(node, summary=reviewer.summary(node, journal))
                self._events.summary(node)
        return node

    def _reviewed(self, node: Node, reviewer: Reviewer) -> Node:
        """Have an attempt judged; where nobody can, its figures stand."""
        try:
            review = reviewer.review(node, self._journal)
        except ReplyUnusable as error:
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
