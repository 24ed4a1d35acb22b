"""What came of a cell: from the kernel's reply to a result."""

from __future__ import annotations

import json
from typing import Any

from taskweaver.ces.artifacts import accept
from taskweaver.ces.channel import Exchange
from taskweaver.ces.common import CellStatus, ExecutionResult
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.place import KernelPlace


def status_of(exchange: Exchange, *, was_interrupted: bool) -> CellStatus:
    """Return how a request that was answered ended."""
    # A shell command that was interrupted is reported as a success; our own note decides.
    if was_interrupted:
        return "interrupted"
    return "ok" if exchange.reply.get("status") == "ok" else "error"


def report_of(exchange: Exchange) -> dict[str, Any]:
    """Return what the kernel's own side reported; empty when it did not."""
    text = exchange.reply.get("user_expressions", {}).get("taskweaver")
    report = json.loads(text) if isinstance(text, str) else {}
    return report if isinstance(report, dict) else {}


def result_of(
    exec_id: str,
    code: str,
    outcome: tuple[CellStatus, Exchange],
    *,
    place: KernelPlace,
    limits: KernelLimits,
    ended: str | None,
) -> ExecutionResult:
    """Return the result of a cell.

    Args:
        exec_id: Id the caller gave.
        code: The code that ran.
        outcome: How it ended, and what was received.
        place: Where the kernel belongs.
        limits: What it may use.
        ended: How the kernel's process ended; None if it goes on.
    """
    status, exchange = outcome
    report = {} if ended is not None else report_of(exchange)
    artifacts, refused = accept(report.get("artifacts", []), place.cwd, limits.artifact_limit_bytes)
    log = [(str(a), str(b), str(c)) for a, b, c in report.get("log", [])]
    return ExecutionResult(
        exec_id,
        code,
        is_success=status == "ok",
        error=None if status == "ok" else _error(status, exchange, limits, ended),
        output=report.get("output", ""),
        stdout=exchange.stdout,
        stderr=exchange.stderr,
        log=[*log, *(("warning", "artifacts", line) for line in refused)],
        artifact=artifacts,
        variables=[(str(name), str(text)) for name, text in report.get("variables", [])],
        status=status,
        is_state_lost=ended is not None,
        is_truncated=report.get("dropped_chars", 0) > 0,
    )


def _error(status: CellStatus, exchange: Exchange, limits: KernelLimits, ended: str | None) -> str:
    trace = "".join(exchange.reply.get("traceback", [])).strip()
    limit_s = limits.cell_timeout_s
    reasons = {
        "timeout": f"The cell was stopped after {limit_s:g} s (execution.cell_timeout_s).",
        "interrupted": "The cell was interrupted.",
        "died": f"The kernel died while the cell ran ({ended or 'stopped'}).",
    }
    lost = "The Python session was restarted: all variables are gone." if ended is not None else ""
    return "\n".join(filter(None, [trace, reasons.get(status, ""), lost]))
