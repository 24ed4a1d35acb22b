"""The live tree of a search at a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.live import Live

from taskweaver.console.search_view import search_view
from taskweaver.treesearch.facts import RunningPhase, SearchSnapshot
from taskweaver.treesearch.results import run_facts
from taskweaver.treesearch.search import Search
from taskweaver.treesearch.state import RunState

_MARGIN = 2


@contextmanager
def live_view(search: Search) -> Iterator[Callable[[RunState], None]]:
    """Give what draws the tree anew when it is told of a change."""
    with Live(auto_refresh=False, transient=False) as live:

        def draw(state: RunState, *hint: str) -> None:
            rows = live.console.size.height - _MARGIN
            live.update(search_view(_snapshot(search, state), rows, *hint), refresh=True)

        yield draw
        draw(search.state, "")  # what stays on the screen


def _snapshot(search: Search, state: RunState) -> SearchSnapshot:
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
        stage=state.stage.label if state.stage else "over",
        budgets=facts.budgets,
        now=now,
        running=phases,
    )
