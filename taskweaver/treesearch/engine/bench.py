"""The bench of a node: carries out phases by workers, or a program in a kernel."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.executors.protocol import JobCall, Resources
from taskweaver.treesearch.execution.installation import (
    Ask,
    has_installed,
    install,
    without_installing,
)
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.phases import run_download_command, run_job
from taskweaver.treesearch.execution.scripts import Script, ScriptRunner, program_of
from taskweaver.treesearch.execution.timing import host_turn
from taskweaver.treesearch.model.artifacts import UnreadArtifacts
from taskweaver.treesearch.model.node import Node, NodeError
from taskweaver.treesearch.model.phase_plan import PHASES, PhasePlan, WorkspacePlan

_FULL_SHARE, _FULL_BYTES = 0.05, 1 << 30
"""Free part of a disk, and free bytes, below which a failed write is put down to it."""
_GRACE_S = 900.0  # beside the commands: taking files over, reading the result
_LOOK_S, _LOOK_BYTES = 0.5, 4_000
_LOSS = (
    "There is no folder of the parent to take over. The files that it and those before it proposed"
    " are written anew; what was downloaded, built or computed there is not."
)
_FETCHING = frozenset({"download", "install"})
_DEVICELESS = _FETCHING | {"coding"}
T = TypeVar("T")


class WorkCancelled(SearchError):
    """The search was stopped while the task of a node ran."""


class _GaveWay(Exception):
    """Spare work was ended for a timed run."""


def check_room(result: JobResult, workspace: Path) -> None:
    """Check that an attempt did not fail for want of room, which is no fault of its own.

    Raises:
        OSError: If it says so, and there is hardly any room.
    """
    full = os.strerror(errno.ENOSPC)
    if result.error is None or full not in f"{result.error.message}{result.output}":
        return
    disk = shutil.disk_usage(workspace)
    if disk.free < min(disk.total * _FULL_SHARE, _FULL_BYTES):
        raise OSError(errno.ENOSPC, full, str(workspace))


class PhaseBench:
    """Carries out the proposal of one node: in phases by workers, or as a script in a kernel.

    Attributes:
        loss: The part of its parent's files that is gone, in words; empty for none.
    """

    def __init__(
        self,
        run: RunParts,
        node: Node,
        check: Callable[[], None],
        tell: Callable[[str], None],
        show: Callable[[str], None],
    ) -> None:
        """Find the files the node takes over.

        `check` is called after a cut-off and raises unless there is time again; `tell`, with each
        phase that begins; `show`, with new output of the phases.
        """
        self._run = run
        self._node = node
        self._check = check
        self._tell, self._show = tell, show
        self._places = run.places.node(node.id)
        self._future: Future[Any] | None = None
        self._jobs: Counter[str] = Counter()
        self._group = f"{node.id}-{node.attempt}"
        self._is_cut_off = threading.Event()
        self._parent = run.journal[node.parent] if node.parent else None
        self._parent_workspace, self._inherited = self._takes_over()
        self.loss = _LOSS if self._inherited else ""

    def cut_off(self) -> None:
        """End the command it waits for, from any thread."""
        self._is_cut_off.set()
        self._run.slots.wake()
        if self._future is not None:
            self._future.cancel()
        if self._run.scripts is not None:
            self._run.scripts.cancel(self._node.id)

    def carry_out(self, node: Node, ask: Ask, needs: Mapping[str, Any]) -> JobResult:
        """Carry out the proposal of the node; return the outcome.

        `ask` decides on the next command that installs packages; `needs` are those Phase 0 names.

        Raises:
            WorkCancelled: If it was cancelled.
            BudgetSpent: If the time of the run is over.
            WorkerLost: If its worker died.
            OSError: If the disk is full.
        """
        if self._run.scripts is not None:
            result = self._run_script(node, self._run.scripts)
        else:
            result = self._run_phases(node, ask, needs)
        result = self._without_host_paths(result)
        check_room(result, self._places.workspace)
        return self._with_loss(result)

    def run_plotting(self, plan: PhasePlan) -> JobResult:
        """Run the plan of a plotting program in the node's workspace, up to its compile phase.

        It gives way to timed runs, and begins again after them.

        Raises:
            WorkCancelled, BudgetSpent, WorkerLost: As `carry_out` does.
        """
        job = replace(
            self._job(plan, self._node.seed), phases=("coding", "compile"), parent_workspace=None
        )
        job = replace(job, log_dir=job.log_dir / "plots")
        while True:
            with suppress(_GaveWay):
                return self._without_host_paths(self._submit(run_job, job, is_spare=True))

    def _without_host_paths(self, result: JobResult) -> JobResult:
        """Return a result that names the workspace as prompts do."""
        masked, error = self._masked, result.error
        phases = (replace(phase, message=masked(phase.message)) for phase in result.phases)
        return replace(
            result,
            phases=tuple(phases),
            error=error and replace(error, message=masked(error.message)),
            output=masked(result.output),
        )

    def _masked(self, text: str) -> str:
        return text.replace(str(self._places.workspace), "/workspace")

    def _with_loss(self, result: JobResult) -> JobResult:
        """Return a result whose first phase names the files that were gone."""
        if not self.loss or not result.phases:
            return result
        first, *others = result.phases
        first = replace(first, message=f"{self.loss} {first.message}")
        return replace(result, phases=(first, *others))

    def _run_script(self, node: Node, scripts: ScriptRunner) -> JobResult:
        self._tell("run")
        before = tuple(program_of(self._run.journal[id_]) for id_ in node.line)
        log = self._places.phase_logs / "run.log"
        slots, cut_off = self._run.slots, self._is_cut_off
        host = host_turn(cut_off) if slots.is_timed else nullcontext()
        with slots.of("").alone(cut_off.is_set), host:
            if slots.is_timed:
                scripts.states.finish()  # variables of earlier scripts are being stored
            workspace = self._places.workspace
            script = Script(program_of(node), workspace, log, before, self._printed)
            result = scripts.run(script)
        if result.error is not None:
            self._stop_if_cut_off()
        return result

    def _printed(self, _stream: str, text: str) -> None:
        self._show(self._masked(text))

    def _run_phases(self, node: Node, ask: Ask, needs: Mapping[str, Any]) -> JobResult:
        plan = node.artifacts
        if not isinstance(plan, PhasePlan):
            problem = plan.problem if isinstance(plan, UnreadArtifacts) else "There is no plan."
            return JobResult(error=NodeError("PhasePlanError", problem))
        parent = self._parent if self._parent_workspace is not None else None
        is_there = parent is not None and has_installed(parent, node)
        wanted = () if is_there else plan.download
        run = self._run
        is_asked = bool(wanted) and run.config.is_iterative and not run.is_embedded
        try:
            job = run.materials.prepared(self._job(plan, node.seed), () if is_asked else wanted)
        except SearchError as error:
            return JobResult(error=NodeError("DownloadError", str(error)))
        fetched = self._download(job, ask if is_asked else None, needs)
        result = without_installing(fetched) if is_there else fetched
        if any(phase.status == "ok" for phase in result.phases):
            workspace = self._places.workspace
            run.materials.note_fetched(workspace, node.branch)
        for phase in PHASES[1:]:
            if result.error is not None:
                break
            self._tell(phase)
            part = replace(job, phases=(phase,), before=result.before)
            result = result.then(self._submit(run_job, part))
        return result

    def _download(self, job: Job, ask: Ask | None, needs: Mapping[str, Any]) -> JobResult:
        """Fetch the resources, and install packages; step by step where a model is asked."""
        self._tell("download")
        if ask is None or job.plan.download:
            fetched = self._submit(run_job, replace(job, phases=PHASES[:1]))
            if fetched.error is not None or ask is None:
                return fetched
        run = partial(self._submit, run_download_command, job)
        return install(job, ask, run, self._run.config.install_steps, needs)

    def _job(self, plan: PhasePlan, seed: int) -> Job:
        """Return the job of a plan, with the files of the node's parent."""
        return Job(
            run_dir=self._run.places.folder,
            node_id=self._node.id,
            workspace=self._places.workspace,
            log_dir=self._places.phase_logs,
            plan=plan,
            parent_workspace=self._parent_workspace,
            inherited=self._inherited,
            seed=seed,
            limits=self._run.config.limits_on(self._run.worker.memory_bytes),
            sandbox=self._run.worker.sandbox,
            passed=self._run.config.passed,
            evaluator=self._run.evaluator,
            is_timed=self._run.slots.is_timed,
        )

    def _takes_over(self) -> tuple[Path | None, tuple[WorkspacePlan, ...]]:
        """Return the folder whose files the node takes over, or else the plans that had them."""
        parent = self._parent
        if parent is None or self._run.scripts is not None:
            return None, ()
        workspace = self._run.places.node(parent.id).workspace
        if workspace.is_dir():
            return workspace, ()
        plans = (node.artifacts for node in self._run.journal.path(parent.id))
        return None, tuple(plan.workspace for plan in plans if isinstance(plan, PhasePlan))

    def _submit(
        self, function: Callable[..., T], job: Job, *more: Any, is_spare: bool = False
    ) -> T:
        """Run a function for a job in a worker, and wait for it; `is_spare` gives way to others."""
        is_command = function is run_download_command
        longest_s = job.limits.download_s if is_command else job.longest_s
        self._stop_if_cut_off()
        phases = ("install",) if is_command else job.phases
        call = JobCall(function, (job, *more), self._new_key(phases[-1]))
        is_alone = self._run.slots.is_timed and "run" in phases
        resources = Resources(int(not _DEVICELESS.issuperset(phases)), self._group, is_alone)
        gives_way = threading.Event()

        def give_way() -> None:
            gives_way.set()
            if self._future is not None:
                self._future.cancel()

        log = job.log_dir / f"{job.phases[0]}.log"
        size = log.stat().st_size if log.exists() else 0
        with self._turn(phases, give_way if is_spare else None):
            future = self._run.executor.submit(call, longest_s + _GRACE_S, resources)
            self._future = future
            # One that came before could not see it.
            if self._is_cut_off.is_set() or gives_way.is_set():
                future.cancel()
            self._watch(future, log, size)
            try:
                return future.result()
            except CancelledError as error:
                self._stop_if_cut_off()
                if gives_way.is_set():
                    raise _GaveWay from error
                raise WorkCancelled("It was stopped.") from error

    def _watch(self, future: Future[Any], log: Path, size: int) -> None:
        """Show the growth of a phase's log beyond a size, until a future is done."""
        is_done = False
        while not is_done:
            is_done = bool(wait([future], _LOOK_S).done)
            with suppress(FileNotFoundError), log.open("rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(size, end - _LOOK_BYTES))
                self._show(self._masked(file.read(end - file.tell()).decode("utf-8", "replace")))
                size = end

    def _turn(
        self, phases: Sequence[str], give_way: Callable[[], None] | None
    ) -> AbstractContextManager[None]:
        """Return the turn at the host that phases need; those that only fetch need none."""
        slot = self._run.slots.of(self._run.executor.host_of(self._group))
        is_given_up = self._is_cut_off.is_set
        if _FETCHING.issuperset(phases):
            return nullcontext()
        return slot.alone(is_given_up) if "run" in phases else slot.shared(is_given_up, give_way)

    def _new_key(self, phase: str) -> str:
        """Return a name that no other job of the node has: ``n0001-run-1`` in its first attempt."""
        self._jobs[phase] += 1
        again = f".{self._jobs[phase]}" if self._jobs[phase] > 1 else ""
        return f"{self._node.id}-{phase}{again}-{self._node.attempt}"

    def _stop_if_cut_off(self) -> None:
        if self._is_cut_off.is_set():
            self._check()
