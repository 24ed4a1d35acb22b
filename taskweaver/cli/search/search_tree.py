"""The tree of a search at a terminal, drawn anew at each change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from taskweaver.console.terminal.text import depth_first, safe
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeStatus
from taskweaver.treesearch.record.run_statistics import Budgets
from taskweaver.treesearch.record.runlog import RunState
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
_LINE_CHARS = 60


@dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """A search at one moment, in seconds since 1970.

    Attributes:
        journal: The nodes.
        stage: The stage as in `StageState.title`; empty before the first.
        running: Running nodes with their phases, when these began, and their newest lines.
        budgets: Use of the budget.
        now: The moment.
    """

    journal: Journal
    stage: str
    running: Sequence[tuple[str, str, float, str]]
    budgets: Budgets
    now: float


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
    return Group(*head, *_tree(snapshot.journal, room), *running)


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
    return [
        safe(f"{node} {phase} {snapshot.now - at:.0f} s{f': {line}' if line else ''}")
        for node, phase, at, line in snapshot.running
    ]


def _headline(snapshot: SearchSnapshot) -> Text:
    objective, best = snapshot.journal.objective, snapshot.journal.best()
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(safe(snapshot.stage or "starting"), style="bold")
    line.append(f"  {safe(objective.name)} ")
    if best is None:
        line.append("nothing measured yet", style="dim")
    else:
        once = ", measured once" if snapshot.journal.is_candidate(best.id) else ""
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


def _tree(journal: Journal, room: int) -> Iterator[Text]:
    best, nodes = journal.best(), journal.nodes
    roots = [node for node in nodes if node.parent is None]
    shown = [
        (depth, node)
        for depth, node in depth_first(roots, lambda node: journal.children(node.id))
        if not node.repeats
    ]
    if len(shown) > room:
        kept = {node.id for node in nodes[-(room - 2) :]} | {best.id if best else ""}
        some = [entry for entry in shown if entry[1].id in kept][-(room - 1) :]
        yield Text(f"... {len(shown) - len(some)} more nodes", style="dim")
        shown = some
    for depth, node in shown:
        yield _line(journal, node, depth, is_best=node is best)


def _line(journal: Journal, node: Node, depth: int, *, is_best: bool) -> Text:
    sign, color = _SIGNS.get(node.status, _FAILED)
    value = journal.figure(node.id) if node.value is None else node.value
    shown = str(node.status) if value is None else journal.objective.text(value)
    line = Text(f"{'  ' * min(depth, 16)}", no_wrap=True, overflow="ellipsis")
    line.append(f"{sign} ", style=color)
    line.append(f"{node.id} {node.kind}", style="bold" if is_best else "")
    line.append(f" {' '.join(safe(node.name).split())}" if node.name else "", style="dim")
    line.append(f"  {shown}", style="bold yellow" if is_best else "")
    if is_best:
        standing = "candidate" if journal.is_candidate(node.id) else "best"
        line.append(f"  {standing}", style="bold yellow")
    return line


class LiveView:
    """The tree of a search, redrawn at each change, below messages."""

    def __init__(self, search: Search, live: Live) -> None:
        self._search = search
        self._live = live
        self._hint = "Ctrl-C stops"

    def changed(self, state: RunState) -> None:
        """Draw the tree."""
        rows = self._live.console.size.height - _MARGIN
        view = search_tree(snapshot(self._search, state), rows, self._hint)
        self._live.update(view, refresh=True)

    def end(self) -> None:
        """Draw the final state."""
        self._hint = ""
        self.changed(self._search.state)

    def say(self, text: str) -> None:
        """Print a message above the tree."""
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
    """Return the present state of a search."""
    now, ticks = time.time(), time.monotonic()
    running = {node.id for node in state.journal.running}
    phases = [
        (node_id, phase, now - (ticks - since), text.rstrip().rpartition("\n")[2][-_LINE_CHARS:])
        for node_id, (phase, since, text) in list(search.running.items())
        if node_id in running
    ]
    stage = state.stage.title if state.stage else "over"
    budgets = run_facts(search.places, state, search.budget).budgets
    return SearchSnapshot(state.journal, stage, phases, budgets, now)
