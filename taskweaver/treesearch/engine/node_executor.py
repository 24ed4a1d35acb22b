"""What a node proposed is carried out: its phases by a worker, or its program in a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.treesearch.agent.events import NodeEvents
from taskweaver.treesearch.agent.toolbox import Toolbox
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.installation.download_phase import (
    Ask,
    has_installed,
    install,
    installs,
    without_installing,
)
from taskweaver.treesearch.execution.job import PHASES, Job, JobResult
from taskweaver.treesearch.execution.phases import run_download_command, run_job
from taskweaver.treesearch.execution.scripts import Script, ScriptRunner, program_of
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeError

_GRACE_S = 900.0  # for what is no command: taking files over, reading the result
_LOSS = (
    "There is no folder of the parent to take over. The files that it and those before it proposed"
    " are written anew; what was downloaded, built or computed there is not."
)
T = TypeVar("T")


class WorkCancelled(SearchError):
    """The search was stopped while a node was worked on."""


class NodeExecutor:
    """Carries out the attempt of one node.

    Attributes:
        loss: What of its parent is not there; empty for nothing.
    """

    def __init__(
        self, tools: Toolbox, journal: Journal, node: Node, check: Callable[[], None]
    ) -> None:
        """Get ready.

        Args:
            tools: What all nodes share.
            journal: All nodes.
            node: The node, as it begins.
            check: Called when it was cut off; it raises unless there is time again.
        """
        self._tools = tools
        self._journal = journal
        self._node = node
        self._check = check
        self._places = tools.places.node(node.id)
        self._events = NodeEvents(tools.store, journal.objective)
        self._future: Future[Any] | None = None
        self._is_cut_off = threading.Event()
        self._parent = journal[node.parent] if node.parent else None
        self._parent_workspace, self._inherited = self._takes_over()
        self.loss = _LOSS if self._inherited else ""

    def cut_off(self) -> None:
        """End the command it waits for, from any thread."""
        self._is_cut_off.set()
        if self._future is not None:
            self._future.cancel()
        if self._tools.scripts is not None:
            self._tools.scripts.give_up(self._node.id)

    def execute(self, node: Node, ask: Ask, needs: Mapping[str, Any]) -> JobResult:
        """Carry it out; return what came of it.

        Args:
            node: The node, with what it proposed.
            ask: Says the next command of an installation.
            needs: Packages it needs, as Phase 0 names them.

        Raises:
            WorkCancelled: If it was given up.
            BudgetSpent: If the time of the run is over.
            WorkerLost: If its worker died.
        """
        if self._tools.scripts is not None:
            result = self._ended(self._run_script(node, self._tools.scripts))
        else:
            result = self._run_phases(node, ask, needs)
        return self._with_loss(result)

    def run(self, job: Job) -> JobResult:
        """Have a worker carry out a further job of the node."""
        return self._without_host_paths(self._submit(run_job, job))

    def _ended(self, result: JobResult) -> JobResult:
        """Note how phases ended, and name the workspace in their results as prompts do."""
        result = self._without_host_paths(result)
        for outcome in result.phases:
            self._events.phase(self._node, outcome)
        return result

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
        if not self.loss or not result.phases:
            return result
        first, *others = result.phases
        told = replace(first, message=f"{self.loss} {first.message}")
        return replace(result, phases=(told, *others))

    def _run_script(self, node: Node, scripts: ScriptRunner) -> JobResult:
        self._tools.on_phase(node.id, "run")
        before = tuple(program_of(self._journal[id_]) for id_ in node.line)
        log = self._places.phase_logs / "run.log"
        result = scripts.run(Script(program_of(node), self._places.workspace, log, before))
        if result.error is not None:
            self._stop_if_cut_off()
        return result

    def _run_phases(self, node: Node, ask: Ask, needs: Mapping[str, Any]) -> JobResult:
        parent = self._parent if self._parent_workspace is not None else None
        is_there = parent is not None and has_installed(parent, node)
        wanted = [] if is_there else installs(node)
        is_asked = self._tools.config.is_iterative and not self._tools.is_embedded and bool(wanted)
        try:
            job = self._tools.materials.prepared(self.job(node), [] if is_asked else wanted)
        except SearchError as error:
            return JobResult(error=NodeError("DownloadError", str(error)))
        fetched = self._download(job, ask if is_asked else None, needs)
        result = self._ended(without_installing(fetched) if is_there else fetched)
        if any(phase.status == "ok" for phase in result.phases):
            workspace = self._places.workspace
            self._tools.materials.note_fetched(self._tools.store, workspace, node.branch)
        for phase in PHASES[1:]:
            if result.error is not None:
                break
            self._tools.on_phase(node.id, phase)
            part = replace(job, phases=(phase,), before=result.before)
            result = result.then(self._ended(self._submit(run_job, part)))
        return result

    def _download(self, job: Job, ask: Ask | None, needs: Mapping[str, Any]) -> JobResult:
        """Fetch what the resource file lists, and install; step by step where a model is asked."""
        self._tools.on_phase(job.node_id, "download")
        if ask is None or job.artifacts["download"]["commands"]:
            fetched = self._submit(run_job, replace(job, phases=PHASES[:1]))
            if fetched.error is not None or ask is None:
                return fetched
        run = partial(self._submit, run_download_command, job)
        return install(job, ask, run, self._tools.config.install_steps, needs)

    def job(self, node: Node) -> Job:
        """Return a node as a job, with the files of its parent."""
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

    def _takes_over(self) -> tuple[Path | None, tuple[Mapping[str, Any], ...]]:
        """Return the folder whose files the node takes over, or else the plans that had them."""
        parent = self._parent
        if parent is None or self._tools.scripts is not None:
            return None, ()
        workspace = self._tools.places.node(parent.id).workspace
        if workspace.is_dir():
            return workspace, ()
        path = self._journal.path(parent.id)
        return None, tuple(node.artifacts for node in path if node.artifacts)

    def _submit(self, function: Callable[..., T], job: Job, *more: Any) -> T:
        """Have a worker do something for a job, and wait for it."""
        is_command = function is run_download_command
        longest_s = job.limits.download_s if is_command else job.longest_s
        self._stop_if_cut_off()
        future = self._tools.workers.submit_within(longest_s + _GRACE_S, function, job, *more)
        self._future = future
        if self._is_cut_off.is_set():  # it came too late for `cut_off` to see it
            future.cancel()
        try:
            return future.result()
        except CancelledError as error:
            self._stop_if_cut_off()
            raise WorkCancelled("It was stopped.") from error

    def _stop_if_cut_off(self) -> None:
        if self._is_cut_off.is_set():
            self._check()
