"""Outcome of a cell: from the kernel's reply to a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from taskweaver.ces.bounds.bound import explanations
from taskweaver.ces.bounds.guard import CellWatch
from taskweaver.ces.common import CellStatus, ExecutionResult
from taskweaver.ces.kernel.channel import KernelReply
from taskweaver.ces.kernel.paths import KernelPaths
from taskweaver.ces.kernel.reported import (
    Report,
    accept,
    fields,
    readable_warnings,
    report_of,
    trace,
)
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.state.transfer import Origin


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a kernel's process.

    Attributes:
        how: How it ended.
        restored_round: Number of the round as of which its variables come back; None if they are
            not stored.
    """

    how: str
    restored_round: int | None

    @classmethod
    def of(cls, process: KernelProcess | None, origin: Origin, *, has_died: bool) -> Self | None:
        """Return the end of a kernel's process; None while it runs. `origin` has its variables."""
        if process is not None and process.is_alive and not has_died:
            return None
        state = origin()
        how = "stopped" if process is None else process.exit_text()
        return cls(how, None if state is None else state.round_number)

    @property
    def text(self) -> str:
        """Consequence for the variables, in a sentence."""
        if self.restored_round is None:
            return "The Python session was restarted: all variables are gone."
        return (
            "The Python session was restarted: the variables are those of the end of round"
            f" {self.restored_round}; later changes are gone."
        )


def result_of(
    exec_id: str,
    code: str,
    outcome: tuple[CellStatus, KernelReply],
    *,
    place: KernelPaths,
    watch: CellWatch,
    ended: Ended | None,
) -> ExecutionResult:
    """Return the result of a cell."""
    (status, exchange), limits = outcome, place.guard.limits
    if any(breach.stops for breach in watch.breaches) and status in {"ok", "interrupted"}:
        status = "error" if ended is None else "died"  # no person has interrupted it
    report = Report() if ended is not None else report_of(fields(exchange.reply))
    place.tables.add(exec_id, report.table)
    artifacts, refused = accept(report.artifacts, place.cwd, limits.artifact_limit_bytes)
    breaches = [*watch.late, *watch.breaches]
    texts = list(dict.fromkeys(breach.text for breach in breaches))
    error = None
    if status != "ok":
        error = _error(status, exchange, limits, ended)
        others = place.guard.other_bounds(breaches)
        error = "\n".join(filter(None, [error, *texts, *explanations(error, others)]))
        texts = []
    return ExecutionResult(
        exec_id,
        code,
        is_success=status == "ok",
        error=error,
        output=report.output,
        stdout=exchange.stdout,
        stderr=[readable_warnings(piece) for piece in exchange.stderr],
        log=[
            *report.log,
            *(("warning", "artifacts", line) for line in refused),
            *(("warning", "limits", line) for line in texts),
            *(("warning", "processes", line) for line in [watch.left] if line),
        ],
        artifact=artifacts,
        variables=report.variables,
        status=status,
        is_state_lost=ended is not None,
        is_truncated=report.is_truncated or exchange.is_cut,
        calls=report.calls,
        tables=report.tables,
    )


def _error(
    status: CellStatus, exchange: KernelReply, limits: KernelLimits, ended: Ended | None
) -> str:
    limit_s = limits.cell_timeout_s
    reasons = {
        "timeout": f"The cell was stopped after {limit_s:g} s (execution.cell_timeout_s).",
        "interrupted": "The cell was interrupted.",
        "died": f"The kernel died while the cell ran ({ended.how if ended else 'stopped'}).",
    }
    lost = ended.text if ended is not None else ""
    return "\n".join(filter(None, [trace(exchange.reply), reasons.get(status, ""), lost]))
