"""The assessment of an executed node: metric, review, plots and summary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from taskweaver.treesearch.agent.events import NodeEvents
from taskweaver.treesearch.agent.reviewer import Reviewer, measured
from taskweaver.treesearch.engine.plotting import Plotter
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.metric import LARGEST
from taskweaver.treesearch.model.node import Node, NodeError, NodeStatus


@dataclass(frozen=True, slots=True)
class NodeAssessor:
    """Assesses the result of one node, with the configured questions if a model is asked (`asks`).

    With `draws_later` a node that wants plots is returned without them.
    `on_phase` is called with the node's id and the phase that begins.
    """

    config: SearchConfig
    journal: Journal
    reviewer: Reviewer
    events: NodeEvents
    plotter: Plotter
    asks: bool
    draws_later: bool
    on_phase: Callable[[str, str], None]

    def assess(self, node: Node, result: JobResult) -> Node:
        """Return the node with its metric, review, plots, summary and status.

        Raises:
            ModelError: If no other question could be answered either.
        """
        if node.error is None:
            node = self._measured(node, result)
        wants_plots = self.config.has_plots
        if self.asks and self.config.has_review:
            self.on_phase(node.id, "review")
            node, is_worth_one = self._reviewed(node)
            wants_plots = wants_plots and is_worth_one
        if node.error is not None:
            node = node.failed(node.error)
        else:
            node = replace(node, status=NodeStatus.OK, time_feedback=self._time_feedback(node))
            wants_plots = wants_plots and self.asks
            node = replace(node, wants_plots=wants_plots)
            if wants_plots and not self.draws_later:
                self.on_phase(node.id, "plots")
                with suppress(ReplyUnusable, BudgetSpent):  # they are drawn later
                    node = self.plotter.draw(node, self.journal, result.files)
                    node = replace(node, wants_plots=False)
        if node.summary:
            self.events.summary(node)
        elif self.asks and self.config.has_summaries and not self.config.has_two_calls:
            self.on_phase(node.id, "summary")
            # An attempt that ran is not worse for want of words.
            with suppress(ReplyUnusable, BudgetSpent):
                node = replace(node, summary=self.reviewer.summary(node, self.journal))
                self.events.summary(node)
        return node

    def _reviewed(self, node: Node) -> tuple[Node, bool]:
        """Return the node with its review, and whether that wants plots.

        Without a review the node's figures stand.
        """
        is_one_call = self.config.has_two_calls
        ask = self.reviewer.assessment if is_one_call else self.reviewer.review
        known = self.events.core(node)
        try:
            review = ask(node, self.journal)
        except (ReplyUnusable, BudgetSpent) as error:
            return replace(node, analysis=f"It was not reviewed: {error}"), not is_one_call
        lessons = review.lessons if self.config.has_summaries else {}
        # What failed may have failed for other reasons: it disproves nothing.
        if review.is_bug or node.error:
            review = replace(review, untrue=(), refuted=())
        node = replace(node, analysis=review.summary, summary=lessons, refutes=review.refuted)
        self.events.refuted(node, review.untrue, known)
        if review.is_bug and node.error is None:
            node = replace(node, error=NodeError("ReviewError", review.summary))
        return node, review.wants_plots

    def _measured(self, node: Node, result: JobResult) -> Node:
        metric = measured(result.result)
        if metric is None and self.asks:
            with suppress(ReplyUnusable):  # then there is none
                metric = self.reviewer.metric(node, self.journal, result)
        problem = ""
        if metric is None:
            problem = "the run measured nothing: working/result.json holds no metric"
        elif metric.value is None:
            problem = f"the metric is no finite number up to {LARGEST:g}: {dict(metric.values)}"
        else:
            metric, problem = self.journal.comparable(metric)
        names = tuple(name for name in metric.values if name) if metric else ()
        node = replace(node, metric=metric, datasets=names)
        self.events.metrics(node, problem)
        if metric is not None and not problem:
            self.journal.note_figure(node.id, metric)
        return replace(node, error=NodeError("MetricError", problem)) if problem else node

    def _time_feedback(self, node: Node) -> str:
        """Return a remark when a run of the third stage leaves most of its time unused."""
        limit = self.config.limits.run_s
        if node.stage != 3 or node.exec_seconds > limit / 2:
            return ""
        return (
            f"The run took {node.exec_seconds:.0f} s of {limit:.0f} s: there is time for more data,"
            " more repetitions or a larger model, where that helps."
        )
