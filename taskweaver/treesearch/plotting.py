"""The plots of a node: drawn by a program of the model's, chosen, and looked at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taskweaver.treesearch.events import NodeEvents
from taskweaver.treesearch.job import Job, JobResult
from taskweaver.treesearch.journal import Journal
from taskweaver.treesearch.node import Node
from taskweaver.treesearch.places import NodePlaces
from taskweaver.treesearch.reviewing import MOST_PLOTS, Reviewer
from taskweaver.treesearch.thinking import ReplyUnusable

_TRIES = 3
_PROGRAM = ".plots/plot.py"


@dataclass(frozen=True, slots=True)
class Plotter:
    """Draws what a run found.

    Attributes:
        places: Where the node's files are.
        events: Where it is noted.
        reviewer: Asks the model.
        job: The job of the node, of which another one is made.
        submit: Runs it.
        vlm_alias: The model that looks at plots; empty for none.
    """

    places: NodePlaces
    events: NodeEvents
    reviewer: Reviewer
    job: Job
    submit: Callable[[Job], JobResult]
    vlm_alias: str

    def draw(self, node: Node, journal: Journal, result: JobResult) -> Node:
        """Return the node with its plots; one that cannot be drawn is as good without."""
        try:
            plots = self._drawn(node, journal, result)
            if len(plots) > MOST_PLOTS:
                names = {path.name: path for path in plots}
                chosen = self.reviewer.select_plots(node, journal, list(names))
                plots = [names[name] for name in chosen]
            node = replace(node, plots=self._kept(plots))
            if not plots or not self.vlm_alias:
                return node
            said = self.reviewer.look_at(node, journal, plots, self.vlm_alias)
        except ReplyUnusable:
            return node
        self.events.looked_at(node, said)
        return replace(node, plot_feedback=said)

    def _drawn(self, node: Node, journal: Journal, result: JobResult) -> list[Path]:
        """Return what a program drew, or the run itself."""
        own = _pictures(self.places.workspace)
        if own:
            return own
        problem = ""
        for _ in range(_TRIES):
            code = self.reviewer.plot_code(node, journal, result, problem)
            done = self.submit(replace(self.job, **_program(code)))
            drawn = _pictures(self.places.workspace)
            if done.error is None and drawn:
                return drawn
            problem = done.error.message if done.error else "it drew nothing into working/"
        return []

    def _kept(self, plots: list[Path]) -> tuple[str, ...]:
        """Copy plots to where the next run of the workspace leaves them alone."""
        self.places.plots.mkdir(parents=True, exist_ok=True)
        kept = []
        for path in plots:
            target = self.places.plots / path.name
            shutil.copyfile(path, target, follow_symlinks=False)
            kept.append(str(target.relative_to(self.places.run_dir)))
        return tuple(kept)


def _pictures(workspace: Path) -> list[Path]:
    working = workspace / "working"
    if workspace.is_symlink() or working.is_symlink():
        return []  # it leads to what code itself cannot read
    found = sorted(working.glob("*.png"))
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _program(code: str) -> dict[str, Any]:
    """Return what a job needs to run a program that leaves ``working`` as it is."""
    file = {"path": _PROGRAM, "content": code}
    build = {"language": "other", "compiler_selected": "", "workdir": "/workspace"}
    return {
        "phases": ("coding", "compile"),
        "parent_workspace": None,
        "artifacts": {
            "coding": {"workspace": {"root": "/workspace", "tree": [], "files": [file]}},
            "compile": {"build_plan": build, "commands": [f"python {_PROGRAM}"]},
            "run": {"commands": ["true"]},  # is not run, and must be there
        },
    }
