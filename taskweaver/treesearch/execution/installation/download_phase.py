"""The download phase with an installer: the model decides on each command, a worker runs it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from taskweaver.ces.command import CommandResult
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.installation.command_loop import (
    BadReply,
    phase1_iterative_driver,
)
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.model.node import Node, NodeError, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.treesearch.model.plan_checks import CommandText

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Run = Callable[[CommandText], CommandResult]
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]*")
# A package is there when it is installed, or when its name can be imported.
_CHECK = (
    "import sys; from importlib import metadata, util;"
    " there = {(one.name or '').lower().replace('_', '-') for one in metadata.distributions()};"
    " print(*(name for name in sys.argv[1:] if name.lower().replace('_', '-') not in there"
    " and not util.find_spec(name.replace('-', '_').partition('.')[0])))"
)


def install(
    job: Job, ask: Ask, run: Run, max_steps: int, dependencies: Mapping[str, Any]
) -> JobResult:
    """Install the packages an attempt needs: `ask` decides on each command, and `run` runs it.

    Of the `dependencies`, which Phase 0 names, the packages below ``pip`` are looked for.
    """

    def decide(progress: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return ask(progress)
        except ReplyUnusable as error:
            raise BadReply(str(error)) from error

    job.log_dir.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    check = _Check(run, dependencies.get("pip"))
    done = phase1_iterative_driver(decide, run, max_steps, folder=job.log_dir, check=check)
    seconds = time.monotonic() - began
    status = "ok" if done.is_ok else "failed"
    log = os.path.relpath(job.log_dir / "download.log", job.run_dir)
    outcome = PhaseOutcome("download", status, seconds, None, done.explanation, log)
    error = None if done.is_ok else NodeError("DownloadError", done.explanation)
    return JobResult((outcome,), error)


def planned_installs(node: Node) -> tuple[CommandText, ...]:
    """Return the commands that a node's plan has for the download phase."""
    return node.artifacts.download if isinstance(node.artifacts, PhasePlan) else ()


def has_installed(parent: Node, node: Node) -> bool:
    """Return whether a parent installed the same as a node plans, in the folder it takes over."""
    has_worked = any(one.name == "download" and not one.has_failed for one in parent.phases)
    planned = planned_installs(node)
    return has_worked and bool(planned) and planned_installs(parent) == planned


def without_installing(result: JobResult) -> JobResult:
    """Return a result whose download phase explains why nothing was installed."""
    message = "Its parent installed the same."
    phases = (
        replace(one, message=message) if one.name == "download" and not one.has_failed else one
        for one in result.phases
    )
    return replace(result, phases=tuple(phases))


class _Check:
    """Finds missing packages at the end of an installation. Once: the plan may be wrong."""

    def __init__(self, run: Run, packages: object) -> None:
        self._run = run
        named = packages if isinstance(packages, list) else []
        found = (_PACKAGE.match(name.strip()) for name in named if isinstance(name, str))
        self._names = [match[0] for match in found if match]

    def __call__(self) -> str:
        """Return the missing packages, in words; empty for none."""
        names, self._names = self._names, []
        if not names:
            return ""
        done = self._run(("python", "-c", _CHECK, *names))
        missing = done.tail.strip()
        return f"the plan names packages that are not here: {missing}" if missing else ""
