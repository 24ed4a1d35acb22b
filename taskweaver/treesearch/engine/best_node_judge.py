"""The choice of the node a run goes on from: the best by metric, or an equal that a model prefers.

A model answers differently from one time to the next, so it is asked once, and its answer is kept
in the log: later questions for the best node have the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.treesearch.agent.describe import candidate_sections
from taskweaver.treesearch.agent.node_agent import TEXT, object_schema
from taskweaver.treesearch.agent.run_agent import RunAgent
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.stages import StageState
from taskweaver.utils.text import shorten

MOST = 5
"""Candidates, at most."""
_NAME = "agent/journal/best_node/introduction"
_REASONING_CHARS = 600
_ANSWER = object_schema(selected_id=TEXT, reasoning=TEXT)


def candidates(journal: Journal) -> list[Node]:
    """Return the nodes to choose from, the best by metric first.

    They are no further from the best than its own seeds are from one another; where these are all
    the same, or there are none, the noise is unknown, and the first ones are taken.
    """
    found = journal.leaders(MOST)
    if not found:
        return []
    again = [node for node in journal.repetitions(found[0].id) if node.is_good]
    once = journal.objective.rank  # each by its own seed, not by a mean that only some have
    ranks = [once(node.metric) for node in [found[0], *again]]
    spread = max(ranks) - min(ranks)
    return [node for node in found if not spread or ranks[0] - once(node.metric) <= spread]


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks a model for the node to go on from; `asks` says whether one is asked at all."""

    journal: Journal
    agent: RunAgent
    asks: bool

    def judgement(self, stage: StageState, after: int) -> Judgement | None:
        """Return the choice of a model after a stage; None without candidates, or without a model.

        `after` is the number of nodes, seed evaluations not counted.

        Raises:
            ModelError: If no other question could be answered either.
        """
        nodes = candidates(self.journal)
        if not self.asks or len(nodes) < 2:
            return None
        ids = tuple(node.id for node in nodes)
        try:
            shown = {node.id: candidate_sections(node, self.journal) for node in nodes}
            answer = self.agent.ask(_NAME, stage, {"Candidates": shown}, _ANSWER)
            chosen, why = str(answer["selected_id"]).strip(), str(answer["reasoning"])
            if chosen not in ids:
                chosen, why = ids[0], f"By metric: {chosen!r} was chosen, which is no candidate."
        except BudgetSpent:
            return None
        except ReplyUnusable as error:
            chosen, why = ids[0], f"By metric: no model could judge. {error}"
        reasoning = shorten(" ".join(why.split()), _REASONING_CHARS)
        return Judgement(stage.stage.number, after, ids, chosen, reasoning)
