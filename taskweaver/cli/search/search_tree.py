"""A search at one moment, for a live terminal: a pure function of plain facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from taskweaver.console.terminal.text import depth_first, safe
from taskweaver.treesearch.model.node import NodeKind, NodeStatus
from taskweaver.treesearch.record.run_facts import NodeFacts, SearchSnapshot

_SIGNS = {
    NodeStatus.OK: ("●", "green"),
    NodeStatus.RUNNING: ("○", "cyan"),
    NodeStatus.CANCELLED: ("○", "dim"),
    NodeStatus.SKIPPED: ("○", "dim"),
}
_FAILED = ("✕", "red")
_LEAST_ROWS = 6


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
