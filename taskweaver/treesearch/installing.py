"""Phase 1, command by command: the model says the next one, a worker runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from taskweaver.ces.command import CommandResult
from taskweaver.treesearch.installer import BadReply, phase1_iterative_driver
from taskweaver.treesearch.job import Job, JobResult
from taskweaver.treesearch.node import NodeError, PhaseOutcome
from taskweaver.treesearch.thinking import ReplyUnusable

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def install(job: Job, ask: Ask, run: Callable[[str], CommandResult], max_steps: int) -> JobResult:
    """Install what an attempt needs.

    Args:
        job: The node's job.
        ask: Says the next command, from the progress so far.
        run: Runs a command.
        max_steps: Most commands.
    """

    def decide(progress: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return ask(progress)
        except ReplyUnusable as error:
            raise BadReply(str(error)) from error

    job.log_dir.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    done = phase1_iterative_driver(decide, run, max_steps, folder=job.log_dir)
    seconds = time.monotonic() - began
    status = "ok" if done.is_ok else "failed"
    outcome = PhaseOutcome("download", status, seconds, None, done.message)
    error = None if done.is_ok else NodeError("DownloadError", done.message)
    return JobResult((outcome,), error)
