"""Questions about stages: whether one goes on with new goals, its summary, and its best node.

A model answers differently from one time to the next, so it is asked once for the best node, and
its answer is kept in the log: later questions for the best node have the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.llm.api import LLMApi
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.rounds import NodeMemory
from taskweaver.treesearch.agent.asking import FLAG, TEXT, Question, SearchAgent, object_schema
from taskweaver.treesearch.agent.describe import (
    attempt_lines,
    candidate_sections,
    findings_lines,
    repeated,
)
from taskweaver.treesearch.agent.events import shown_elsewhere
from taskweaver.treesearch.agent.prompt_files import KEEPING
from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.stages import StageState
from taskweaver.treesearch.record.run_statistics import reached
from taskweaver.utils.text import shorten

_COMPLETE = object_schema(is_complete=FLAG, reasoning=TEXT)
_GOALS = object_schema(goals=TEXT)
_SUMMARY = object_schema(summary=TEXT)
_BEST = object_schema(selected_id=TEXT, reasoning=TEXT)
_BEST_NODE = "agent/journal/best_node/introduction"
_MOST_CANDIDATES = 5
_REASONING_CHARS = 600


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
class StageAgent:
    """Asks a model about the stages of a run, with the memory of the root, if the run has one.

    Prompts and replies are written to a folder of the run. Where the model is built in, the figures
    alone decide and speak.
    """

    run: RunParts
    api: LLMApi

    def _ask(
        self, text: str, stage: StageState, sections: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask for an object of a schema; of a task with a memory, with a memory block.

        `text` is the name of the prompt's file, below ``prompts/``. The sections come after the
        idea, the metric and the goals.

        Raises:
            ReplyUnusable: If no reply could be used.
            BudgetSpent: If no more may be spent.
            ModelError: If no other question could be answered either.
        """
        run, folder, memory = self.run, self.run.places.manager_prompts, None
        root = run.store.root if run.store and text in KEEPING else None
        if root is not None:
            is_required, log = not run.config.has_two_calls, MemoryPromptLog(folder)
            memory = NodeMemory(root, "root", log, shown_elsewhere(), is_required)
        shown = {
            **run.aim,
            "Goals": stage.goals,
            **sections,
        }
        hint = text.removesuffix("/introduction").rpartition("/")[2]
        label, model = f"{stage.label}_{hint}", run.config.models.summary
        question = Question(label, text, shown, dict[str, Any], model, hint, schema)
        return SearchAgent(self.api, run.prompts, folder, run.config.asking, memory).ask(question)

    @property
    def judges(self) -> bool:
        """Whether a model may choose the node to go on from."""
        return self.run.config.has_judge and not self.run.is_embedded

    def is_open(self, stage: StageState) -> bool:
        """Return whether a model may set further goals for a stage."""
        config, number = self.run.config, stage.stage.number
        is_wanted = config.has_goals and not self.run.is_embedded and number > 1
        if not is_wanted or stage.substage >= config.max_substages:
            return False
        return len(self.run.journal.of_stage(number)) < config.stage_nodes[number - 1]

    def verdict(self, stage: StageState) -> Verdict:
        """Return whether a stage goes on, and with which goals.

        Raises:
            ModelError: If no other question could be answered either.
        """
        if not self.is_open(stage):
            return Verdict()
        reason = ""
        try:
            answer = self._ask_about("completion_eval", stage, _COMPLETE)
            reason = str(answer["reasoning"])
            if answer["is_complete"]:
                return Verdict(reason)
            goals = self._ask_about("goal_prompt", stage, _GOALS)["goals"]
            return Verdict(reason, str(goals).strip())
        except (ReplyUnusable, BudgetSpent):
            return Verdict(reason)

    def summary(self, stage: StageState) -> str:
        """Return the summary of a stage.

        Raises:
            ModelError: If no other question could be answered either.
        """
        figures = self._figures(stage)
        if self.run.is_embedded or not self.run.config.has_summaries:
            return figures
        try:
            answer = self._ask_about("stage_summary", stage, _SUMMARY)["summary"]
        except (ReplyUnusable, BudgetSpent):
            return figures
        return f"{answer}\n{figures}"

    def _ask_about(self, name: str, stage: StageState, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Ask about the attempts of a stage."""
        journal = self.run.journal
        nodes = journal.of_stage(stage.stage.number)
        shown = {
            "Figures": self._figures(stage),
            "Attempts": attempt_lines(journal, nodes),
            "What was learnt": findings_lines(journal, nodes),
        }
        best = journal.best(nodes)
        if best is not None:
            shown |= repeated(best, journal)
        return self._ask(f"agent/manager/{name}", stage, shown, schema)

    def _figures(self, stage: StageState) -> str:
        journal = self.run.journal
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

    def judgement(self, stage: StageState) -> Judgement | None:
        """Return the choice of a model after a stage; None without candidates, or without a model.

        Raises:
            ModelError: If no other question could be answered either.
        """
        journal = self.run.journal
        nodes = candidates(journal)
        if not self.judges or len(nodes) < 2:
            return None
        ids = tuple(node.id for node in nodes)
        try:
            shown = {node.id: candidate_sections(node, journal) for node in nodes}
            answer = self._ask(_BEST_NODE, stage, {"Candidates": shown}, _BEST)
            chosen, why = str(answer["selected_id"]).strip(), str(answer["reasoning"])
            if chosen not in ids:
                chosen, why = ids[0], f"By metric: {chosen!r} was chosen, which is no candidate."
        except BudgetSpent:
            return None
        except ReplyUnusable as error:
            chosen, why = ids[0], f"By metric: no model could judge. {error}"
        reasoning = shorten(" ".join(why.split()), _REASONING_CHARS)
        return Judgement(stage.stage.number, journal.attempts, ids, chosen, reasoning)


def candidates(journal: Journal) -> list[Node]:
    """Return the nodes to choose from, the best by metric first.

    They are no further from the best than its own seeds are from one another; where these are all
    the same, or there are none, the noise is unknown, and the first ones are taken.
    """
    found = journal.leaders(_MOST_CANDIDATES)
    if not found:
        return []
    again = [node for node in journal.repetitions(found[0].id) if node.is_good]
    once = journal.objective.rank  # each by its own seed, not by a mean that only some have
    ranks = [once(node.metric) for node in [found[0], *again]]
    spread = max(ranks) - min(ranks)
    return [node for node in found if not spread or ranks[0] - once(node.metric) <= spread]
