"""The tree of a search at a terminal: its state at one moment, drawn anew at each change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from taskweaver.console.terminal.text import depth_first, safe
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import NodeKind, NodeStatus
from taskweaver.treesearch.record.run_statistics import Budgets
from taskweaver.treesearch.record.state import RunState
from taskweaver.treesearch.reports.run_results import run_facts

_SIGNS = {
    NodeStatus.OK: ("●", "green"),
    NodeStatus.RUNNING: ("○", "cyan"),
    NodeStatus.CANCELLED: ("○", "dim"),
    NodeStatus.SKIPPED: ("○", "dim"),
}
_FAILED = ("✕", "red")
_LEAST_ROWS = 6
_MARGIN = 2


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node, as a live view shows it; see `Node`. One that runs may have its figure already.

    A repetition is another measurement of the program of an earlier node.
    """

    id: str
    kind: NodeKind
    status: NodeStatus
    parent: str | None = None
    name: str = ""
    value: float | None = None
    is_repetition: bool = False


@dataclass(frozen=True, slots=True)
class RunningPhase:
    """A running node with its phase, and when that began, in seconds since 1970."""

    node_id: str
    phase: str
    since: float


@dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """A search at one moment, in seconds since 1970.

    The stage is spelled as in `StageState.title`, and empty before the first; the best node is None
    while nothing was measured, and may only be lucky where it is a candidate.
    """

    name: str
    objective: Objective
    stage: str
    nodes: tuple[NodeFacts, ...]
    best: str | None
    running: tuple[RunningPhase, ...]
    budgets: Budgets
    now: float
    is_candidate: bool = False

    @classmethod
    def of(
        cls,
        journal: Journal,
        *,
        name: str,
        stage: str,
        budgets: Budgets,
        now: float,
        running: Iterable[RunningPhase] = (),
    ) -> SearchSnapshot:
        """Return the snapshot of a journal."""
        best = journal.best()
        nodes = tuple(
            NodeFacts(
                node.id,
                node.kind,
                node.status,
                node.parent,
                node.name,
                journal.figure(node.id) if node.value is None else node.value,
                is_repetition=bool(node.repeats),
            )
            for node in journal.nodes
        )
        return cls(
            name,
            journal.objective,
            stage,
            nodes,
            best.id if best else None,
            tuple(running),
            budgets,
            now,
            is_candidate=best is not None and journal.is_candidate(best.id),
        )


def search_tree(
    snapshot: SearchSnapshot, rows: int = 30, hint: str = "Ctrl-C stops"
) -> RenderableType:
    """Return a search's display on a terminal, with a hint that is empty when the search has ended.

    A tree of more rows is cut to its newest part and the best node's line.
    """
    head = [_headline(snapshot), _budget_line(snapshot, hint)]
    running = [
        Text(f"  {line}", style="cyan", no_wrap=True, overflow="ellipsis")
        for line in _running(snapshot)
    ]
    room = max(rows - len(head) - len(running), _LEAST_ROWS)
    return Group(*head, *_tree(snapshot, room), *running)


def status_line(snapshot: SearchSnapshot) -> str:
    """Return what runs now and since when, what was used, and what is left, in one line."""
    budgets = snapshot.budgets
    uses = (("nodes", budgets.nodes), ("tokens", budgets.tokens), ("cost", budgets.money))
    left = [
        f"{max(use.limit - use.used, 0):,.10g} {name}" for name, use in uses if use and use.limit
    ]
    if budgets.seconds.limit:
        left.append(_clock(max(budgets.seconds.limit - budgets.seconds.used, 0)))
    return safe(
        f"now: {', '.join(_running(snapshot)) or 'nothing'};"
        f" so far: {_budget_line(snapshot, '').plain.replace('  ', ', ')};"
        f" left: {', '.join(left) or 'no limit'}"
    )


def _running(snapshot: SearchSnapshot) -> list[str]:
    return [f"{p.node_id} {p.phase} {snapshot.now - p.since:.0f} s" for p in snapshot.running]


def _headline(snapshot: SearchSnapshot) -> Text:
    objective = snapshot.objective
    best = next((node for node in snapshot.nodes if node.id == snapshot.best), None)
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(safe(snapshot.stage or "starting"), style="bold")
    line.append(f"  {safe(objective.name)} ")
    if best is None:
        line.append("nothing measured yet", style="dim")
    else:
        once = ", measured once" if snapshot.is_candidate else ""
        line.append(f"{objective.text(best.value)} ({best.id}{once})", style="bold yellow")
    return line


def _budget_line(snapshot: SearchSnapshot, hint: str) -> Text:
    budgets = snapshot.budgets
    parts = [f"{budgets.nodes.used:.0f}{_of(budgets.nodes.limit)} nodes"]
    parts.append(_clock(budgets.seconds.used))
    if budgets.seconds.limit:
        parts[-1] += f" of {_clock(budgets.seconds.limit)}"
    if budgets.tokens.used:
        parts.append(f"{budgets.tokens.used:,.0f}{_of(budgets.tokens.limit)} tokens")
    if budgets.money is not None:
        parts.append(f"cost {budgets.money.used:.2f}{_of(budgets.money.limit)}")
    line = "  ".join(filter(None, [*parts, hint]))
    return Text(line, style="dim", no_wrap=True, overflow="ellipsis")


def _of(limit: float) -> str:
    return f" of {limit:,.0f}" if limit else ""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _tree(snapshot: SearchSnapshot, room: int) -> Iterator[Text]:
    lines = list(_ordered(snapshot.nodes))
    shown = [
        (depth, node)
        for depth, node in lines
        if node.kind is not NodeKind.SEED and not node.is_repetition
    ]
    if len(shown) > room:
        newest = {node.id for node in sorted(snapshot.nodes, key=lambda n: n.id)[-(room - 2) :]}
        kept = [entry for entry in shown if entry[1].id in newest | {snapshot.best}][-(room - 1) :]
        yield Text(f"... {len(shown) - len(kept)} more nodes", style="dim")
        shown = kept
    for depth, node in shown:
        yield _line(snapshot, node, depth)


def _ordered(nodes: Sequence[NodeFacts]) -> Iterator[tuple[int, NodeFacts]]:
    """Yield depth and node, each below its parent."""
    children: dict[str | None, list[NodeFacts]] = {}
    known = {node.id for node in nodes}
    for node in nodes:
        parent = node.parent if node.parent in known else None
        children.setdefault(parent, []).append(node)
    yield from depth_first(children.get(None, []), lambda node: children.get(node.id, []))


def _line(snapshot: SearchSnapshot, node: NodeFacts, depth: int) -> Text:
    sign, color = _SIGNS.get(node.status, _FAILED)
    is_best = node.id == snapshot.best
    line = Text(f"{'  ' * min(depth, 16)}", no_wrap=True, overflow="ellipsis")
    line.append(f"{sign} ", style=color)
    line.append(f"{node.id} {node.kind}", style="bold" if is_best else "")
    line.append(f" {' '.join(safe(node.name).split())}" if node.name else "", style="dim")
    value = snapshot.objective.text(node.value) if node.value is not None else str(node.status)
    line.append(f"  {value}", style="bold yellow" if is_best else "")
    standing = "candidate" if snapshot.is_candidate else "best"
    line.append(f"  {standing}" if is_best else "", style="bold yellow")
    return line


class LiveView:
    """The tree of a search, redrawn at each change, with messages above it."""

    def __init__(self, search: Search, live: Live) -> None:
        self._search = search
        self._live = live
        self._hint = "Ctrl-C stops"

    def changed(self, state: RunState) -> None:
        """Draw it."""
        rows = self._live.console.size.height - _MARGIN
        view = search_tree(snapshot(self._search, state), rows, self._hint)
        self._live.update(view, refresh=True)

    def end(self) -> None:
        """Draw the final state."""
        self._hint = ""
        self.changed(self._search.state)

    def say(self, text: str) -> None:
        """Say that it stops."""
        self._hint = ""
        self._live.console.print(Text(safe(text)))


@contextmanager
def live_view(search: Search) -> Iterator[LiveView]:
    """Give the live tree of a search."""
    with Live(auto_refresh=False, transient=False) as live:
        view = LiveView(search, live)
        yield view
        view.end()


def snapshot(search: Search, state: RunState) -> SearchSnapshot:
    """Return a search as it is now."""
    facts = run_facts(search.places, state, search.budget)
    now, ticks = time.time(), time.monotonic()
    running = {node.id for node in state.journal.running}
    phases = [
        RunningPhase(node_id, phase, now - (ticks - since))
        for node_id, (phase, since) in list(search.running.items())
        if node_id in running
    ]
    return SearchSnapshot.of(
        state.journal,
        name=facts.name,
        stage=state.stage.title if state.stage else "over",
        budgets=facts.budgets,
        now=now,
        running=phases,
    )
