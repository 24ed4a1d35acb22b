"""The plots of a node: drawn by a program of the model's, chosen, and looked at.

An attempt that ran is as good without them: after a failure here, the node stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.agent.events import NodeEvents
from taskweaver.treesearch.agent.reviewer import MOST_PLOTS, Reviewer
from taskweaver.treesearch.errors import PhasePlanError, ReplyUnusable, WorkerLost
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.workspace import list_files, read_inside
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.phase_plan import WORKING, PhasePlan
from taskweaver.treesearch.record.places import NodePlaces

_TRIES = 3
_PROGRAM = ".plots/plot.py"
_SUFFIX = ".png"
_MOST_BYTES = 64 << 20
_BEGINNING = b"\x89PNG\r\n\x1a\n"
_END = b"IEND\xaeB`\x82"


@dataclass(frozen=True, slots=True)
class Plotter:
    """Draws the results of a run.

    `run` runs the program of a plan in the node's workspace; `is_seen` says whether a model looks
    at plots.
    """

    places: NodePlaces
    events: NodeEvents
    reviewer: Reviewer
    run: Callable[[PhasePlan], JobResult]
    is_seen: bool

    def draw(self, node: Node, journal: Journal, files: Sequence[str]) -> Node:
        """Return the node with its plots, and a description of them, given the files of its run.

        Raises:
            BudgetSpent: If the budget of the run does not last until there are plots.
            ReplyUnusable: If the model could not be asked for the program, this time.
            ModelError: If no other question could be answered either.
        """
        drawn = self._drawn(node, journal, files)
        node = replace(node, plots=self._kept(self._chosen(node, journal, drawn)))
        if not node.plots or not self.is_seen:
            return node
        plots = [self.places.run_dir / plot for plot in node.plots]
        try:
            feedback = self.reviewer.look_at(node, journal, plots)
        except (ReplyUnusable, BudgetSpent) as error:
            return replace(node, plot_feedback=f"The plots were not looked at: {error}")
        self.events.looked_at(node, feedback)
        return replace(node, plot_feedback=feedback)

    def _drawn(self, node: Node, journal: Journal, files: Sequence[str]) -> list[str]:
        """Return the names of the plots that the run drew, or else a program."""
        drawn = self._pictures()
        failed: list[tuple[str, str]] = []
        while not drawn and len(failed) < _TRIES:
            try:
                code = self.reviewer.plot_code(node, journal, files, failed)
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
            done = self.run(_plan(code))
        except (PhasePlanError, WorkerLost) as error:
            return str(error)
        return f"{done.error.message}\n{done.output}" if done.error else ""

    def _chosen(self, node: Node, journal: Journal, drawn: list[str]) -> list[str]:
        if len(drawn) <= MOST_PLOTS:
            return drawn
        try:
            return self.reviewer.select_plots(node, journal, drawn)
        except (ReplyUnusable, BudgetSpent):
            return drawn[:MOST_PLOTS]

    def _kept(self, names: list[str]) -> tuple[str, ...]:
        """Copy plots to where the next run of the workspace leaves them alone."""
        kept = []
        for name in names:
            data = self._picture(name)
            if data is not None:
                target = self.places.plots / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                kept.append(str(target.relative_to(self.places.run_dir)))
        return tuple(kept)

    def _pictures(self) -> list[str]:
        workspace = self.places.workspace
        if workspace.is_symlink():
            return []  # it leads to what code itself cannot read
        names = (path.removeprefix(f"{WORKING}/") for path in list_files(workspace, WORKING))
        return [n for n in names if n.endswith(_SUFFIX) and "/" not in n and self._picture(n)]

    def _picture(self, name: str) -> bytes | None:
        """Return a plot; None for a file that is none, or was not written to its end."""
        path = f"{self.places.node_id}/{WORKING}/{name}"
        try:
            data = read_inside(self.places.workspace.parent, path, _MOST_BYTES) or b""
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
