"""What travels to a worker and back: plain data, so that a worker may be another process.

A job names files by paths below the run's folder; what it made comes back as data and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.treesearch.model.limits import PhaseLimits
from taskweaver.treesearch.model.node import NodeError, PhaseOutcome

PHASES = ("download", "coding", "compile", "run")
"""The phases of an attempt, in order; phase 0, the plan, comes before them."""
PACKAGES = ".pydeps"
"""Folder of a workspace that the download phase installs Python packages into."""
_HASH_SEEDS = 1 << 32


def run_variables(seed: int, packages: str) -> dict[str, str]:
    """Return the variables that the commands of a node are given.

    Args:
        seed: Its seed.
        packages: Its folder of Python packages.
    """
    return {
        "OMP_NUM_THREADS": "1",  # processes share the cores; a command may set its own number
        "PYTHONPATH": packages,
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": str(seed % _HASH_SEEDS),
        "TASKWEAVER_SEED": str(seed),
    }


FileStates = Mapping[str, tuple[int, ...] | None]
"""What tells whether a file was written since, by path; None where there is none."""


@dataclass(frozen=True, slots=True)
class Job:
    """Some phases of one node.

    Attributes:
        run_dir: Folder of the run.
        node_id: The node.
        workspace: Its folder to work in, made when it is not there.
        parent_workspace: Folder its files are taken over from; None for none.
        inherited: Where there should be such a folder and is not: the ``phase_artifacts`` whose
            files it had, the oldest first.
        log_dir: Folder of the logs ``download.log``, ``coding.log``, ``compile.log``, ``run.log``.
        artifacts: The ``phase_artifacts``, as `plan.PhasePlan.to_dict` gives them.
        phases: Which of `PHASES` to run, in order.
        seed: Given to the run as ``TASKWEAVER_SEED`` and ``PYTHONHASHSEED``.
        limits: What they may use.
        sandbox: What they may reach; None runs them without a sandbox. The network it grants is
            for the download alone.
        before: What its expected outputs were before its first phase, as an earlier job of the
            same node found them; None for the first job.
    """

    run_dir: Path
    node_id: str
    workspace: Path
    log_dir: Path
    artifacts: Mapping[str, Any]
    phases: tuple[str, ...] = PHASES
    parent_workspace: Path | None = None
    inherited: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0
    limits: PhaseLimits = field(default_factory=PhaseLimits)
    sandbox: SandboxPolicy | None = None
    before: FileStates | None = None

    @property
    def longest_s(self) -> float:
        """Longest time its commands may take, one after the other."""
        limits = self.limits
        each = {"download": limits.download_s, "compile": limits.compile_s, "run": limits.run_s}
        return sum(
            limit * len((self.artifacts.get(phase) or {}).get("commands") or ())
            for phase, limit in each.items()
            if phase in self.phases
        )


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came of a job.

    Attributes:
        phases: How its phases ended; none after the first that failed.
        error: Why it failed; None when all went well.
        output: End of what the last command printed.
        result: What the run wrote to `plan.RESULT_FILE`; None without one.
        files: Files below ``working`` afterwards, relative to the workspace.
        exec_seconds: How long the run phase took.
        before: What the expected outputs were before its first phase.
    """

    phases: tuple[PhaseOutcome, ...] = ()
    error: NodeError | None = None
    output: str = ""
    result: Mapping[str, Any] | None = None
    files: tuple[str, ...] = ()
    exec_seconds: float = 0.0
    before: FileStates | None = None

    def then(self, later: JobResult) -> JobResult:
        """Return what came of this job and of a later one of the same node."""
        return replace(later, phases=self.phases + later.phases)
