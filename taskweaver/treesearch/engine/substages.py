"""Questions about a stage: whether it goes on with new goals, and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.treesearch.agent.describe import attempt_lines, findings_lines, repeated
from taskweaver.treesearch.agent.node_agent import FLAG, TEXT, object_schema
from taskweaver.treesearch.agent.run_agent import RunAgent
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.stages import StageState
from taskweaver.treesearch.record.run_statistics import reached

_COMPLETE = object_schema(is_complete=FLAG, reasoning=TEXT)
_GOALS = object_schema(goals=TEXT)
_SUMMARY = object_schema(summary=TEXT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on the goals of a substage.

    Attributes:
        reason: Why they are reached, or not; empty without an answer.
        goals: The next goals; empty when the stage is over.
    """

    reason: str = ""
    goals: str = ""


@dataclass(frozen=True, slots=True)
class Substages:
    """Asks a model about stages; where `asks` is off, the figures alone decide and speak."""

    config: SearchConfig
    journal: Journal
    agent: RunAgent
    asks: bool

    def is_open(self, stage: StageState) -> bool:
        """Return whether a model may set further goals for a stage."""
        config, number = self.config, stage.stage.number
        is_wanted = config.has_goals and self.asks and number > 1
        if not is_wanted or stage.substage >= config.max_substages:
            return False
        return len(self.journal.of_stage(number)) < config.stage_nodes[number - 1]

    def verdict(self, stage: StageState) -> Verdict:
        """Return whether a stage goes on, and with which goals.

        Raises:
            ModelError: If no other question could be answered either.
        """
        if not self.is_open(stage):
            return Verdict()
        reason = ""
        try:
            answer = self._ask("completion_eval", stage, _COMPLETE)
            reason = str(answer["reasoning"])
            if answer["is_complete"]:
                return Verdict(reason)
            return Verdict(reason, str(self._ask("goal_prompt", stage, _GOALS)["goals"]).strip())
        except (ReplyUnusable, BudgetSpent):
            return Verdict(reason)

    def summary(self, stage: StageState) -> str:
        """Return the summary of a stage.

        Raises:
            ModelError: If no other question could be answered either.
        """
        figures = self._figures(stage)
        if not self.asks or not self.config.has_summaries:
            return figures
        try:
            answer = self._ask("stage_summary", stage, _SUMMARY)["summary"]
        except (ReplyUnusable, BudgetSpent):
            return figures
        return f"{answer}\n{figures}"

    def _ask(self, name: str, stage: StageState, schema: Mapping[str, Any]) -> dict[str, Any]:
        nodes = self.journal.of_stage(stage.stage.number)
        shown = {
            "Figures": self._figures(stage),
            "Attempts": attempt_lines(self.journal, nodes),
            "What was learnt": findings_lines(self.journal, nodes),
        }
        best = self.journal.best(nodes)
        if best is not None:
            shown |= repeated(best, self.journal)
        return self.agent.ask(f"agent/manager/{name}", stage, shown, schema)

    def _figures(self, stage: StageState) -> str:
        journal = self.journal
        nodes = journal.of_stage(stage.stage.number)
        good, failed = [n for n in nodes if n.is_good], [n for n in nodes if n.has_failed]
        best = journal.best(nodes)
        base = journal[stage.base] if stage.base else None
        parts = [f"{stage.label}: {len(nodes)} nodes, {len(good)} good, {len(failed)} failed."]
        if base is not None:
            parts.append(f"It began with {base.id}: {reached(journal, base)}.")
        if best is not None:
            line = f"The best of its own nodes is {best.id}: {reached(journal, best)}"
            is_gain = base is None or journal.rank(best.id) > journal.rank(base.id)
            parts.append(f"{line}." if is_gain else f"{line}, no better than what it began with.")
        return " ".join(parts)
