"""A run as one HTML page that needs nothing else: the tree, and behind each node all of it.

Long texts are cut, so that the page of a thousand nodes still opens at once; the files beside it
have the whole.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.model.artifacts import artifact_commands, changes
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.phase_logs import read_phase_logs
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.run_facts import RunFacts
from taskweaver.utils.files import write_text
from taskweaver.utils.markup.html_page import fill_page

_TEXT_CHARS = 4000
_ALL_TEXT_CHARS = 12_000_000
_PLOT_BYTES = 400_000
_ALL_PLOT_BYTES = 6_000_000
_MOST_EVENTS = 30
_MOST_ABREAST = 8


def write_page(
    journal: Journal, run_dir: Path, facts: RunFacts, store: BranchedMemory | None
) -> Path:
    """Write the page of a run, ``tree.html``, with its memory if it has one; return its path.

    Raises:
        OSError: If it cannot be written.
    """
    target = run_dir / "tree.html"
    write_text(target, build_page(journal, run_dir, facts, store))
    return target


def build_page(
    journal: Journal, run_dir: Path, facts: RunFacts, store: BranchedMemory | None
) -> str:
    """Return the page of a run; see `write_page`."""
    template = files(__package__).joinpath("page.html").read_text("utf-8")
    return fill_page(template, facts.title or facts.name, _data(journal, run_dir, facts, store))


def _data(
    journal: Journal, run_dir: Path, facts: RunFacts, store: BranchedMemory | None
) -> dict[str, Any]:
    best = journal.best()
    places, budgets = RunPlaces(run_dir), facts.budgets
    chars = min(_TEXT_CHARS, _ALL_TEXT_CHARS // max(8 * len(journal), 1))
    details = _Details(journal, places, store, chars)
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
        "places": layout(journal),
        "nodes": [details.of(node) for node in journal.nodes],
    }


def layout(journal: Journal) -> dict[str, tuple[float, float]]:
    """Return where each node is drawn: leaves side by side, a parent above the middle of its own.

    Where a node has many leaves, they stand in several lines, half a row apart: each subtree has
    its columns for itself, so nothing else is there.

    Returns:
        Column and row by id, from 0.
    """
    places: dict[str, tuple[float, float]] = {}
    depths: dict[str, int] = {}
    for node in journal.nodes:
        depths[node.id] = depths.get(node.parent, -1) + 1 if node.parent else 0
    next_column = 0
    roots = [node.id for node in journal.nodes if node.parent not in journal]
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node_id, is_done = waiting.pop()
        children = [child.id for child in journal.children(node_id)]
        if is_done or not children:
            columns = [places[child][0] for child in children] or [next_column]
            next_column += not children
            places[node_id] = ((min(columns) + max(columns)) / 2, depths[node_id])
            continue
        leaves = [child for child in children if not journal.children(child)]
        waiting.append((node_id, True))
        if len(leaves) > _MOST_ABREAST:
            lines = math.ceil(math.sqrt(len(leaves) / 4))
            wide = math.ceil(len(leaves) / lines)
            for n, leaf in enumerate(leaves):
                line, column = divmod(n, wide)
                places[leaf] = (next_column + column, depths[leaf] + line / 2)
            next_column += wide
            children = [child for child in children if child not in places]
        waiting += [(child, False) for child in reversed(children)]
    return places


class _Details:
    """Details of a node on the page."""

    def __init__(
        self, journal: Journal, places: RunPlaces, store: BranchedMemory | None, chars: int
    ) -> None:
        self._journal = journal
        self._places = places
        self._store = store
        self._chars = chars
        self._plot_bytes = _ALL_PLOT_BYTES

    def of(self, node: Node) -> dict[str, Any]:
        """Return it as plain data."""
        objective = self._journal.objective
        before = self._journal.files(node.parent or "")
        own = self._journal.files(node.id)
        again = self._journal.repeated_samples(node.id)
        code = "\n\n".join(f"--- {path}\n{text}" for path, text in own.items())
        return {
            "id": node.id,
            "kind": node.kind.value,
            "name": node.name,
            "status": node.status.value,
            "parent": node.parent,
            "stage": node.stage,
            "value": run_statistics.reached(self._journal, node) if node.is_good else None,
            "rank": objective.rank(node.metric) if node.is_good else None,
            "values": dict(node.metric.values) if node.metric else {},
            "plan": self._cut(node.plan),
            "error": f"{node.error.kind}: {self._cut(node.error.message)}" if node.error else "",
            "diff": changes(before, own, 2 * self._chars) if node.parent else "",
            "code": self._cut(code, 2),
            "commands": self._commands(node),
            "logs": read_phase_logs(self._places.node(node.id), self._chars),
            "output": self._cut(node.output),
            "review": self._cut(node.analysis),
            "summary": {
                name: self._cut(text)
                for name, text in run_statistics.lessons(self._journal, node).items()
            },
            "plot_feedback": self._cut(node.plot_feedback),
            "plots": list(self._plots(node)),
            "memory": list(self._memory(node)),
            "phases": [
                [phase.name, phase.status, round(phase.seconds, 2)] for phase in node.phases
            ],
            "seed": node.seed,
            "same_as": node.same_as,
            "again": again.text(objective) if again else "",
            "branch": node.branch if node.branch != node.id else "",
            "seconds": round((node.finished_at or node.started_at) - node.started_at, 2),
            "cost": [node.cost.calls, node.cost.prompt_tokens + node.cost.completion_tokens],
        }

    def _cut(self, text: str, times: int = 1) -> str:
        most = times * self._chars
        if len(text) <= most:
            return text
        half = most // 2
        return f"{text[:half]}\n... {len(text) - most:,} characters left out ...\n{text[-half:]}"

    def _commands(self, node: Node) -> dict[str, list[str]]:
        found = artifact_commands(node.artifacts)
        return {phase: [*map(self._cut, listed)] for phase, listed in found.items() if listed}

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

    def _memory(self, node: Node) -> Iterator[list[str]]:
        if self._store is None or not node.branch:
            return
        for step in self._store[node.branch].history(limit=_MOST_EVENTS)[::-1]:
            yield [step.tier, self._cut(step.text)]
