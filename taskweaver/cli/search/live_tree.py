"""The live tree of a search at a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from taskweaver.cli.search.search_tree import search_tree
from taskweaver.console.terminal.text import safe
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.record.run_facts import RunningPhase, SearchSnapshot
from taskweaver.treesearch.record.state import RunState
from taskweaver.treesearch.reports.run_results import run_facts

_MARGIN = 2


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
