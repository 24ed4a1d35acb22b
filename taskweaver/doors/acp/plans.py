"""Plans as entries with a status."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp.helpers import plan_entry, update_plan
from acp.schema import AgentPlanUpdate, PlanEntry, PlanEntryStatus

from taskweaver.doors.acp.cells import shown

_STEP = re.compile(r"(?:(\d+)[.)]|[-*])\s+(\S.*)")


def plan_update(plan: str, current: str, *, is_done: bool) -> AgentPlanUpdate:
    """Return the entries of a plan.

    Args:
        plan: Its text, a line for each step.
        current: Text of the step that is under way, as the plan has it.
        is_done: Whether the request was answered.
    """
    steps = _steps(plan)
    return update_plan(_entries(steps, len(steps) if is_done else _position(steps, current)))


def _steps(plan: str) -> list[str]:
    """Return the steps of a plan; a line that begins none belongs to the step before it."""
    steps: list[str] = []
    for line in filter(None, map(str.strip, plan.splitlines())):
        begun = _STEP.match(line)
        if begun or not steps:
            steps.append(begun[2] if begun else line)
        else:
            steps[-1] += f"\n{line}"
    return steps


def _position(steps: Sequence[str], current: str) -> int:
    """Return the position of a step in a plan; the first where that is not said."""
    begun = _STEP.match(current.strip())
    if begun and begun[1]:
        return max(0, min(int(begun[1]) - 1, len(steps) - 1))
    text = begun[2] if begun else current.strip()
    return steps.index(text) if text in steps else 0


def _entries(steps: Sequence[str], position: int) -> list[PlanEntry]:
    def status(number: int) -> PlanEntryStatus:
        if number < position:
            return "completed"
        return "in_progress" if number == position else "pending"

    return [plan_entry(shown(step), status=status(number)) for number, step in enumerate(steps)]
