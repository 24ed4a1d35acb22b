"""The plots of a node: drawn by a program of the model's, chosen, and looked at.

An attempt that ran is as good without them: after a failure here, the node stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.engine.bench import WorkCancelled
from taskweaver.treesearch.engine.node_attempt import NodeAttempt
from taskweaver.treesearch.engine.review_questions import (
    MOST_PLOTS,
    choice_question,
    look_question,
    plot_question,
)
from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.errors import ExecutorLost, PhasePlanError, ReplyUnusable, WorkerLost
from taskweaver.treesearch.execution.workspace import list_files, read_inside
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.phase_plan import WORKING, PhasePlan

_TRIES = 3
_PROGRAM = ".plots/plot.py"
_SUFFIX = ".png"
_MOST_BYTES = 64 << 20
_BEGINNING = b"\x89PNG\r\n\x1a\n"
_END = b"IEND\xaeB`\x82"


@dataclass(frozen=True, slots=True)
class Plotter:
    """Draws the results of an attempt; its node stays as it is."""

    attempt: NodeAttempt

    def draw(self, node: Node, files: Sequence[str]) -> Node:
        """Return the node with its plots, and a description of them, given the files of its run.

        Raises:
            BudgetSpent: If the budget of the run does not last until there are plots.
            ReplyUnusable: If the model could not be asked for the program, this time.
            ModelError: If no other question could be answered either.
        """
        drawn = self._drawn(node, files)
        node = replace(node, plots=self._kept(self._chosen(node, drawn)))
        if not node.plots or not self.attempt.run.config.models.vlm:
            return node
        plots = [self.attempt.places.run_dir / plot for plot in node.plots]
        try:
            feedback = self.attempt.agent.ask(look_question(self.attempt, node, plots))
        except (ReplyUnusable, BudgetSpent) as error:
            return replace(node, plot_feedback=f"The plots were not looked at: {error}")
        self.attempt.events.looked_at(node, feedback)
        return replace(node, plot_feedback=feedback)

    def draw_later(self) -> Node:
        """Return a node that has ended with its plots, and with the cost of their calls.

        Without plots it is as good as before, and says why there are none. Where the model could
        not be asked, it still wants them: they are drawn when the run is resumed.

        Raises:
            WorkCancelled, BudgetSpent: If it was cancelled, or the run has no time for it.
            ExecutorLost: If no job can run any more.
        """
        attempt = self.attempt
        files = list_files(attempt.places.workspace, WORKING)
        node = replace(attempt.node, wants_plots=False, plot_feedback="")
        try:
            node = self.draw(node, files)
        except (WorkCancelled, BudgetSpent, ExecutorLost):
            raise
        except Exception as error:  # noqa: BLE001 - the node is as good without plots
            attempt.check()
            is_later = isinstance(error, ModelError | ReplyUnusable)
            reason = f"No plots were drawn: {error}"
            node = replace(node, plot_feedback=reason, wants_plots=is_later)
        return replace(node, cost=node.cost + attempt.cost)

    def _drawn(self, node: Node, files: Sequence[str]) -> list[str]:
        """Return the names of the plots that the run drew, or else a program."""
        drawn = self._pictures()
        failed: list[tuple[str, str]] = []
        while not drawn and len(failed) < _TRIES:
            try:
                question = plot_question(self.attempt, node, files, failed)
                code = self.attempt.agent.ask(question)
            except ReplyUnusable as error:
                if isinstance(error.__cause__, ModelError):  # it can be asked later
                    raise
                break
            if not code.strip():
                break
            problem = self._problem(code)
            drawn = [] if problem and len(failed) + 1 < _TRIES else self._pictures()
            failed.append((code, problem or f"it left no {_SUFFIX} file in {WORKING}/"))
        return drawn

    def _problem(self, code: str) -> str:
        """Run a program; return why it failed."""
        try:
            done = self.attempt.bench.run_plotting(_plan(code))
        except (PhasePlanError, WorkerLost) as error:
            return str(error)
        return f"{done.error.message}\n{done.output}" if done.error else ""

    def _chosen(self, node: Node, drawn: list[str]) -> list[str]:
        if len(drawn) <= MOST_PLOTS:
            return drawn
        try:
            return self.attempt.agent.ask(choice_question(self.attempt, node, drawn))
        except (ReplyUnusable, BudgetSpent):
            return drawn[:MOST_PLOTS]

    def _kept(self, names: list[str]) -> tuple[str, ...]:
        """Copy plots to where the next run of the workspace leaves them alone."""
        places, kept = self.attempt.places, []
        for name in names:
            data = self._picture(name)
            if data is not None:
                target = places.plots / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                kept.append(str(target.relative_to(places.run_dir)))
        return tuple(kept)

    def _pictures(self) -> list[str]:
        workspace = self.attempt.places.workspace
        if workspace.is_symlink():
            return []  # it leads to what code itself cannot read
        names = (path.removeprefix(f"{WORKING}/") for path in list_files(workspace, WORKING))
        return [n for n in names if n.endswith(_SUFFIX) and "/" not in n and self._picture(n)]

    def _picture(self, name: str) -> bytes | None:
        """Return a plot; None for a file that is none, or was not written to its end."""
        places = self.attempt.places
        path = f"{places.node_id}/{WORKING}/{name}"
        try:
            data = read_inside(places.workspace.parent, path, _MOST_BYTES) or b""
        except ValueError:
            return None
        return data if data.startswith(_BEGINNING) and data.endswith(_END) else None


def _plan(code: str) -> PhasePlan:
    """Return the plan that runs a program as its compile phase, which leaves ``working`` alone.

    Raises:
        PhasePlanError: If the program cannot be written to a file.
    """
    file = {"path": _PROGRAM, "content": code}
    sections = {
        "coding": {"workspace": {"files": [file]}},
        "compile": {"commands": [f"python {_PROGRAM}"]},
        "run": {"commands": ["true"]},  # is not run, and must be there
    }
    return PhasePlan.from_dict(sections)


class LaterPlots:
    """The nodes whose plots are drawn, one at a time, beside the attempts of a run.

    Attributes:
        works: The work on each, in order; used by one thread.
    """

    def __init__(self, run: RunParts) -> None:
        """Start with none. Use it as a context manager."""
        self.works: dict[Future[Node], NodeAttempt] = {}
        self._run = run

    def __enter__(self) -> None:
        """Begin to draw plots."""
        self._thread = ThreadPoolExecutor(1, "search-plots")

    def __exit__(self, *_: object) -> None:
        """Wait for the work that was not given up."""
        self._thread.shutdown()

    def add(self, node: Node) -> None:
        """Have the plots of a node drawn, after those that wait."""
        attempt = NodeAttempt(self._run, node)
        self.works[self._thread.submit(Plotter(attempt).draw_later)] = attempt

    def stop(self) -> None:
        """Give up what is drawn and what waits, from any thread; nodes still want their plots."""
        for work, attempt in list(self.works.items()):
            work.cancel()
            attempt.cancel()

    def take(self) -> Iterator[Node]:
        """Yield the nodes whose work has ended, but for those that still want their plots.

        Raises:
            SearchError: If the run cannot go on.
        """
        for work in [work for work in self.works if work.done()]:
            del self.works[work]
            with suppress(WorkCancelled, BudgetSpent, CancelledError):
                yield work.result()
