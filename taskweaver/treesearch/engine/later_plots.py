"""Plots of attempts that have ended: drawn one at a time, beside the attempts of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.engine.node_executor import NodeExecutor, WorkCancelled
from taskweaver.treesearch.engine.plotting import Plotter
from taskweaver.treesearch.errors import ExecutorLost, ReplyUnusable
from taskweaver.treesearch.execution.workspace import list_files
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.node import Cost, Node
from taskweaver.treesearch.model.phase_plan import WORKING


@dataclass(frozen=True, slots=True)
class PlotTask:
    """Draws the plots of one node that has ended."""

    node: Node
    journal: Journal
    api: LLMApi
    executor: NodeExecutor
    plotter: Plotter

    def cancel(self) -> None:
        """Cancel the task, from any thread."""
        self.api.close()
        self.executor.cut_off()

    def run(self) -> Node:
        """Return the node with its plots, and with the cost of their calls.

        Without plots it is as good as before, and says why there are none. Where the model could
        not be asked, it still wants them: they are drawn when the run is resumed.

        Raises:
            WorkCancelled, BudgetSpent: If it was cancelled, or the run has no time for it.
            ExecutorLost: If no job can run any more.
        """
        files = list_files(self.plotter.places.workspace, WORKING)
        node = replace(self.node, wants_plots=False, plot_feedback="")
        try:
            node = self.plotter.draw(node, self.journal, files)
        except (WorkCancelled, BudgetSpent, ExecutorLost):
            raise
        except Exception as error:
            if self.api.is_interrupted:
                raise WorkCancelled("It was stopped.") from error
            is_later = isinstance(error, ModelError | ReplyUnusable)
            reason = f"No plots were drawn: {error}"
            node = replace(node, plot_feedback=reason, wants_plots=is_later)
        used = self.api.usage
        cost = Cost(used.calls, used.prompt_tokens, used.completion_tokens, used.cost)
        return replace(node, cost=node.cost + cost)


class LaterPlots:
    """The nodes whose plots wait, and the one whose plots are drawn; used by one thread.

    Attributes:
        future: The task that runs; None for none.
    """

    def __init__(self, make_task: Callable[[Node], PlotTask]) -> None:
        """Start with none. `make_task` makes the task of a node."""
        self.future: Future[Node] | None = None
        self._make_task = make_task
        self._waiting: deque[Node] = deque()
        self._task: PlotTask | None = None

    @property
    def is_busy(self) -> bool:
        """Whether plots are drawn or wait."""
        return self.future is not None or bool(self._waiting)

    def add(self, node: Node) -> None:
        """Have the plots of a node drawn, after those that wait."""
        self._waiting.append(node)

    def begin(self, threads: Executor) -> None:
        """Begin with the next, unless one is drawn or none waits."""
        if self.future is not None:
            return
        try:
            node = self._waiting.popleft()
        except IndexError:  # none waits, perhaps since `stop` was called a moment ago
            return
        self._task = task = self._make_task(node)
        self.future = threads.submit(task.run)

    def stop(self) -> None:
        """Give up what is drawn and what waits, from any thread; nodes still want their plots."""
        self._waiting.clear()
        task = self._task  # the other thread may take its node meanwhile
        if task is not None:
            task.cancel()

    def take(self) -> Node | None:
        """Return the node whose plots are ready; None for none, or one that still wants them.

        Raises:
            SearchError: If the run cannot go on.
        """
        if self.future is None or not self.future.done():
            return None
        future, self.future, self._task = self.future, None, None
        try:
            return future.result()
        except (WorkCancelled, BudgetSpent):
            return None
