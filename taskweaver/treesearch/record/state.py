"""The state of a run: its journal and stage, read from its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import Cost, Node
from taskweaver.treesearch.model.stages import STAGES, StageState
from taskweaver.treesearch.record.run_statistics import total_cost


@dataclass(frozen=True, slots=True)
class StagePassed:
    """A stage that is over, with the id of the best node then, None when none worked."""

    state: StageState
    reason: str
    best: str | None
    summary: str = ""


@dataclass(slots=True)
class RunState:
    """State of a run.

    Attributes:
        journal: Its nodes; those that had not finished are left out when a log is read.
        stage: Its stage; None when it has ended.
        passed: Stages that are over.
        title: Title of its idea.
        seconds: Duration of its earlier sittings.
        spent: Consumption of its model calls before, those of cancelled nodes too.
        started_at: When it began, in seconds since 1970.
        is_over: Whether it has ended; it does not go on then.
        is_spent: Whether it ended because its budget was spent; with more it can go on.
        reason: Why it ended.
        remarks: Faults of machines, in words: they are no attempt's.
    """

    journal: Journal
    stage: StageState | None
    passed: list[StagePassed] = field(default_factory=list)
    title: str = ""
    seconds: float = 0.0
    spent: Cost = field(default_factory=Cost)
    started_at: float = 0.0
    is_over: bool = False
    is_spent: bool = False
    reason: str = ""
    remarks: list[str] = field(default_factory=list)

    @property
    def has_waiting_plots(self) -> bool:
        """Whether attempts still want plots, which are drawn when the run goes on."""
        return any(node.wants_plots for node in self.journal.good)


def fold(entries: Iterable[Mapping[str, Any]], *, keeps_running: bool = False) -> RunState | None:
    """Return the state that a log describes; None for an empty one.

    Args:
        entries: The entries of the log.
        keeps_running: Whether a process works on the run, so that nodes which had not finished
            are not left out.

    Raises:
        SearchError: If an entry is not one of a run.
    """
    state: RunState | None = None
    for entry in entries:
        try:
            if entry["t"] == "run":
                objective = Objective(**entry["objective"])
                title = str(entry.get("title", ""))
                state = RunState(Journal(objective), None, title=title, started_at=entry["at"])
            elif state is None:
                raise KeyError("run")
            else:
                _take(state, entry)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise SearchError(
                f"The run's log has an entry that cannot be read: {error}."
            ) from error
    if state is not None:
        for node in () if keeps_running else state.journal.running:
            state.journal.drop(node.id)
        # What calls consumed may be missing: of a machine that went down, or an older version.
        of_nodes = total_cost(state.journal.nodes)
        if state.spent.calls < of_nodes.calls:
            state.spent = of_nodes
    return state


def _take(state: RunState, entry: Mapping[str, Any]) -> None:
    kind = entry["t"]
    state.seconds = entry.get("elapsed", state.seconds)
    state.spent += Cost(**entry.get("cost", {}))
    if kind == "node":
        _take_node(state.journal, Node.from_dict(entry["node"]))
    elif kind == "stage":
        stage = STAGES[entry["stage"] - 1]
        state.stage = StageState(
            stage, entry["base"], entry["substage"], entry["goals"], entry["first"]
        )
    elif kind == "judged":
        state.journal.judge(Judgement.from_dict(entry))
    elif kind == "stage_ended" and state.stage is not None:
        passed = StagePassed(state.stage, entry["reason"], entry["best"])
        if state.passed and state.passed[-1].state == state.stage:
            state.passed.pop()  # the process ended before it went on: it was closed again
        state.passed.append(passed)
    elif kind == "stage_summary" and state.passed:
        state.passed[-1] = replace(state.passed[-1], summary=entry["summary"])
    elif kind == "ended":
        state.is_over, state.reason, state.stage = True, entry["reason"], None
        state.is_spent = bool(entry.get("spent"))
    elif kind == "remark":
        state.remarks.append(entry["text"])
    elif kind == "reopened":
        reopen(state)


def _take_node(journal: Journal, node: Node) -> None:
    if node.parent is not None and node.parent not in journal:
        raise KeyError(node.parent)
    # Nodes stand in the order they were begun in, as while the run went on; one that begins
    # again, after it was cancelled, begins anew.
    if node.finished_at is None and node.id in journal:
        journal.drop(node.id)
    journal.put(node)


def reopen(state: RunState) -> None:
    """Reopen a run whose budget was spent: its last stage is not over after all."""
    state.is_over, state.is_spent, state.reason = False, False, ""
    state.stage = state.passed.pop().state if state.passed else None


def stage_entry(state: StageState) -> dict[str, Any]:
    """Return the log entry of a stage that begins."""
    return {
        "stage": state.stage.number,
        "base": state.base,
        "substage": state.substage,
        "goals": state.goals,
        "first": state.first,
    }
