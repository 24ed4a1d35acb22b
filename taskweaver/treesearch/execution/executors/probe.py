"""The probe of a worker's environment, run where jobs will run."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from taskweaver import __version__
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.limits import half_of_memory
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.execution.gpus import gpus
from taskweaver.treesearch.execution.machine import (
    Fact,
    collect_environment,
    compilers,
    copy_rate,
    programs,
)

_KIND = (
    "machine", "cpu", "cpus", "caches", "simd", "numa_nodes", "gpus", "compilers", "python",
    "python_packages",
)  # fmt: skip
"""Facts that a measurement depends on: workers that differ in one are of different kinds."""


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Facts about a machine that runs jobs.

    Attributes:
        host: Its name.
        environment: The facts that prompts show; see `collect_environment`.
        programs: Names of all programs on its path, any of which may compile.
        gpus: Its GPUs, by UUID where that is known.
        memory_bytes: Memory that a command may use there unless the configuration says otherwise.
        sandbox: Policy of the sandbox that its commands run in; None for none.
        warning: Why the sandbox is not the one that was asked for; empty when it is.
        problem: Why it cannot run jobs of the search; empty when it can.
        version: Version of this package there.
    """

    host: str
    environment: Mapping[str, Fact]
    gpus: tuple[str, ...]
    memory_bytes: int
    sandbox: SandboxPolicy | None
    warning: str = ""
    problem: str = ""
    version: str = __version__
    programs: frozenset[str] = frozenset()

    @property
    def compilers(self) -> tuple[str, ...]:
        """Names of its compilers, those of MPI too."""
        return compilers(self.programs, has_gpus=bool(self.gpus))

    @property
    def kind(self) -> str:
        """Hash of the facts that measurements and commands depend on."""
        tier = self.sandbox.tier if self.sandbox else ""
        facts = [
            *(self.environment.get(name) for name in _KIND),
            self.compilers,
            bool(self.gpus),
            tier,
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """The machine in a few words."""
        cpu, cpus = self.environment.get("cpu", "unknown CPU"), self.environment.get("cpus", "?")
        parts = [f"{cpu}, {cpus} usable"]
        parts += [f"{len(self.gpus)} GPUs"] if self.gpus else []
        parts.append(f"sandbox {self.sandbox.tier if self.sandbox else 'none'}")
        return ", ".join(parts)


def probe_machine(request: SandboxRequest, run_dir: Path | None = None) -> WorkerFacts:
    """Return facts about this machine.

    `run_dir` is the folder of a run, which it must be able to see.
    """
    policy, warning, problem = None, "", ""
    try:
        choice = request.choose()
    except SandboxUnavailable as error:
        problem = f"its sandbox does not work: {error.reason}"
    else:
        policy, warning = choice.policy, choice.warning
    if run_dir is not None and not run_dir.is_dir():
        problem = f"it does not see {run_dir}: hosts of a search share its file system"
    environment = collect_environment() | {"memory_copy": copy_rate()}
    return WorkerFacts(
        host=socket.gethostname(),
        environment={name: fact for name, fact in environment.items() if fact},
        gpus=gpus(),
        memory_bytes=half_of_memory(),
        sandbox=policy,
        warning=warning,
        problem=problem,
        programs=programs(),
    )
