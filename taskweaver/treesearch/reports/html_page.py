"""A run as one HTML page that needs nothing else: the tree, and behind each node all of it.

Long texts are cut, so that the page of a thousand nodes still opens at once; the files beside it
have the whole.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.run_statistics import RunFacts
from taskweaver.treesearch.reports.run_data import node_facts, pick, read_phase_logs
from taskweaver.utils.files import write_text
from taskweaver.utils.markup.html_page import fill_page
from taskweaver.utils.text import shorten

_TEXT_CHARS = 4000
_ALL_TEXT_CHARS = 12_000_000
_PLOT_BYTES = 400_000
_ALL_PLOT_BYTES = 6_000_000
_MOST_EVENTS = 30
_FACTS = (
    "id", "kind", "name", "status", "parent", "stage", "metric", "metric_per_dataset", "plan",
    "error", "changes", "commands", "review", "summary", "vlm_feedback_summary", "phases", "seed",
    "same_as", "branch", "seconds", "cost",
)  # fmt: skip


def write_page(
    journal: Journal, run_dir: Path, facts: RunFacts, store: BranchedMemory | None
) -> Path:
    """Write the page of a run, ``tree.html``, with its memory if it has one; return its path.

    Raises:
        OSError: If it cannot be written.
    """
    target = run_dir / "tree.html"
    template = files(__package__).joinpath("page.html").read_text("utf-8")
    data = _data(journal, run_dir, facts, store)
    write_text(target, fill_page(template, facts.title or facts.name, data))
    return target


def _data(
    journal: Journal, run_dir: Path, facts: RunFacts, store: BranchedMemory | None
) -> dict[str, Any]:
    best = journal.best()
    places, budgets = RunPlaces(run_dir), facts.budgets
    chars = min(_TEXT_CHARS, _ALL_TEXT_CHARS // max(8 * len(journal), 1))
    shown = _Shown(journal, places, store, chars)
    return {
        "title": facts.title,
        "name": facts.name,
        "objective": {
            "name": journal.objective.name,
            "unit": journal.objective.unit,
            "aim": "higher is better" if journal.objective.maximize else "lower is better",
        },
        "reason": facts.reason or "not over yet",
        "best": best.id if best else None,
        "standing": run_statistics.standing(journal, best) if best else "",
        "path": [node.id for node in journal.path(best.id)] if best else [],
        "judged": run_statistics.overruled(journal),
        "certainty": run_statistics.certainty(journal),
        "used": {
            "nodes": len(journal),
            "seconds": round(budgets.seconds.used),
            "tokens": budgets.tokens.used,
            "money": budgets.money.used if budgets.money else None,
        },
        "stages": [
            {"number": stage.number, "name": stage.name, "reason": stage.reason}
            for stage in facts.stages
        ],
        "nodes": [shown.node(node) for node in journal.nodes],
    }


class _Shown:
    """Nodes as the page shows them; texts are cut, and plots are pictures while there is room."""

    def __init__(
        self, journal: Journal, places: RunPlaces, store: BranchedMemory | None, chars: int
    ) -> None:
        self._journal = journal
        self._places = places
        self._store = store
        self._chars = chars
        self._plot_bytes = _ALL_PLOT_BYTES

    def node(self, node: Node) -> dict[str, Any]:
        """Return a node as plain data."""
        files = self._journal.files(node.id)
        facts = pick(node_facts(self._journal, node), _FACTS) | {
            "code": "\n\n".join(f"--- {path}\n{text}" for path, text in files.items()),
            "logs": read_phase_logs(self._places.node(node.id), self._chars),
            "memory": self._memory(node),
        }
        shown: dict[str, Any] = self._cut(facts)
        return {**shown, "plots": list(self._plots(node))}

    def _cut(self, value: Any) -> Any:
        """Return data whose texts have no more than the characters there is room for."""
        match value:
            case str():
                return shorten(value, self._chars)
            case dict():
                return {name: self._cut(one) for name, one in value.items()}
            case list():
                return [self._cut(one) for one in value]
        return value

    def _plots(self, node: Node) -> Iterator[dict[str, str]]:
        for relative in node.plots:
            path = self._places.folder / relative
            if not path.is_file() or path.is_symlink():
                continue
            size = path.stat().st_size
            if size > min(_PLOT_BYTES, self._plot_bytes):
                yield {"name": relative, "data": ""}
                continue
            self._plot_bytes -= size
            data = base64.b64encode(path.read_bytes()).decode()
            yield {"name": relative, "data": f"data:image/png;base64,{data}"}

    def _memory(self, node: Node) -> list[str]:
        if self._store is None or not node.branch:
            return []
        steps = self._store[node.branch].history(limit=_MOST_EVENTS)
        return [f"{step.tier}: {step.text}" for step in reversed(steps)]
