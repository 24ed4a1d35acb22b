"""Jobs and their results: plain data, so that a worker may be another process.

A job names files by paths below the run's folder; its result comes back as data and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.treesearch.execution.results import Evaluator
from taskweaver.treesearch.model.limits import PhaseLimits
from taskweaver.treesearch.model.node import NodeError, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import PHASES, PhasePlan, WorkspacePlan

PACKAGES = ".pydeps"
"""Folder of a workspace that the download phase installs Python packages into."""
_HASH_SEEDS = 1 << 32


def run_variables(seed: int, packages: str) -> dict[str, str]:
    """Return the variables of a node's commands, with its seed and its folder of packages."""
    return {
        "OMP_NUM_THREADS": "1",  # processes share the cores; a command may set its own number
        "PYTHONPATH": packages,
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": str(seed % _HASH_SEEDS),
        "TASKWEAVER_SEED": str(seed),
    }


FileStates = Mapping[str, tuple[int, ...] | None]
"""Inode, time and size of files, by path, which a write changes; None where there is none."""


@dataclass(frozen=True, slots=True)
class Job:
    """Job of a worker: some phases of one node.

    Attributes:
        run_dir: Folder of the run.
        node_id: The node.
        workspace: Its folder to work in, made when it is not there.
        parent_workspace: Folder its files are taken over from; None for none.
        inherited: Files of the parent's folder where that is gone, the oldest first.
        log_dir: Folder of the logs ``download.log``, ``coding.log``, ``compile.log``, ``run.log``.
        plan: The files and commands of its phases.
        limits: Limits of the phases.
        phases: Which of `PHASES` to run, in order.
        seed: Given to the run as ``TASKWEAVER_SEED`` and ``PYTHONHASHSEED``.
        sandbox: Files and network they may reach; None runs them without a sandbox. The network
            it grants is for the download alone.
        passed: Names of the host's variables that its commands are given, `*` for any ending.
        evaluator: Measures it after its run; None where its run measures itself.
        is_timed: Whether its metric is a time or a rate, which depends on what else the host does.
        before: States of its expected outputs before its first phase, as an earlier job of the
            same node found them; None for the first job.
    """

    run_dir: Path
    node_id: str
    workspace: Path
    log_dir: Path
    plan: PhasePlan
    limits: PhaseLimits
    phases: tuple[str, ...] = PHASES
    parent_workspace: Path | None = None
    inherited: tuple[WorkspacePlan, ...] = ()
    seed: int = 0
    sandbox: SandboxPolicy | None = None
    passed: tuple[str, ...] = ()
    evaluator: Evaluator | None = None
    is_timed: bool = False
    before: FileStates | None = None

    @property
    def longest_s(self) -> float:
        """Longest time its commands may take, one after the other."""
        limits, plan = self.limits, self.plan
        each = {
            "download": limits.download_s * len(plan.download),
            "compile": limits.compile_s * len(plan.compile),
            "run": limits.run_s * (len(plan.run) + (self.evaluator is not None)),
        }
        return sum(seconds for phase, seconds in each.items() if phase in self.phases)


@dataclass(frozen=True, slots=True)
class JobResult:
    """Outcome of a job.

    Attributes:
        phases: How its phases ended; none after the first that failed.
        error: Why it failed; None when all went well.
        output: End of the last command's output.
        result: Content of `phase_plan.RESULT_FILE`; None without one.
        files: Files below ``working`` afterwards, relative to the workspace.
        exec_seconds: How long the run phase took.
        before: States of the expected outputs before its first phase.
        variables: Variables of the kernel that ran a script, with their descriptions.
    """

    phases: tuple[PhaseOutcome, ...] = ()
    error: NodeError | None = None
    output: str = ""
    result: Mapping[str, Any] | None = None
    files: tuple[str, ...] = ()
    exec_seconds: float = 0.0
    before: FileStates | None = None
    variables: tuple[tuple[str, str], ...] = ()

    def then(self, later: JobResult) -> JobResult:
        """Return the outcome of this job and of a later one of the same node."""
        return replace(later, phases=self.phases + later.phases)
