"""Runs searches for the command line: shows how they go on, and what came out."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import click

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.searching import (
    find_run,
    resume_search,
    runs,
    session_on_node,
    start_search,
)
from taskweaver.console.surface import is_plain
from taskweaver.console.text import counted, safe
from taskweaver.treesearch import findings
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.journal import Journal
from taskweaver.treesearch.node import Node
from taskweaver.treesearch.places import RunPlaces
from taskweaver.treesearch.results import results_of, write_results
from taskweaver.treesearch.runlog import read_log
from taskweaver.treesearch.search import Search
from taskweaver.treesearch.state import RunState, fold


@dataclass(frozen=True, slots=True)
class Wish:
    """Which run is meant.

    Attributes:
        idea: The idea of a new one; None for one to go on with.
        resume: Name of the one to go on with.
        name: Name of a new one; empty makes one.
        index: Which idea of a JSON list.
        memory_db: File of the memory of a new one; None keeps it in the run's folder.
    """

    idea: Path | None
    resume: str | None
    name: str = ""
    index: int = 0
    memory_db: Path | None = None


def search_and_show(
    project: Path | None, wish: Wish, settings: dict[str, Any], *, is_plain: bool
) -> int:
    """Search, show how it goes on, and return the exit status.

    Returns:
        0 when a node measured something, else 1.

    Raises:
        TaskWeaverError: If the project, the run or the idea cannot be used.
    """
    with TaskWeaverApp(project) as app:
        for warning in app.warnings:
            _say(f"warning: {warning}", "yellow")
        if wish.resume is not None:
            search = resume_search(app, wish.resume, settings)
        else:
            assert wish.idea is not None
            search = start_search(
                app,
                wish.idea,
                settings,
                name=wish.name,
                index=wish.index,
                memory_db=wish.memory_db,
            )
        with search:
            _introduce(app, search)
            with _stopping(search), _shown(search, plain=is_plain) as changed:
                search.run(changed)
            _say("writing the report ...")
            write_results(search.places, search.state, search.budget, search.store)
        return _conclude(search)


def _introduce(app: TaskWeaverApp, search: Search) -> None:
    _say(f"run: {search.places.folder}")
    model = search.services.announcement if not search.is_embedded else "model: built-in proposer"
    _say(f"{model}; sandbox: {app.sandbox}")
    objective = search.objective
    _say(f"optimises {objective.name}, {'higher' if objective.maximize else 'lower'} is better")
    for note in search.notes:
        _say(note, "yellow")
    known = len(search.state.journal)
    if search.state.is_over:
        _say("it is over already: its results are written anew")
    elif known:
        _say(f"goes on after {counted(known, 'node')}")


@contextmanager
def _stopping(search: Search) -> Iterator[None]:
    """Let the first Ctrl-C stop the search cleanly, and a second one end it at once."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        _say("stopping: what is being tried is given up, the rest is kept ...")
        search.stop()

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _shown(search: Search, *, plain: bool) -> Iterator[Any]:
    """Give what is told of changes: it draws a live tree, or prints a line for each node."""
    if not plain and not is_plain(sys.stdout) and sys.stdout.isatty():
        from taskweaver.cli.search_live import live_view

        with live_view(search) as changed:
            yield changed
        return
    seen: set[str] = {node.id for node in search.state.journal.nodes}

    def tell(state: RunState) -> None:
        for node in state.journal.nodes:
            if node.finished_at is not None and node.id not in seen:
                seen.add(node.id)
                click.echo(_line(node, state.journal))

    yield tell


def _line(node: Node, journal: Journal) -> str:
    value = journal.objective.text(node.value) if node.is_good else str(node.status)
    best = journal.best()
    mark = "  best" if best is not None and best.id == node.id else ""
    name = f" {node.name}" if node.name else ""
    origin = f" of {node.parent}" if node.parent else ""
    why = f" ({node.error.kind})" if node.error else ""
    return safe(f"{node.id} {node.kind}{name}{origin}: {value}{why}{mark}")


def _conclude(search: Search) -> int:
    state, places = search.state, search.places
    best = state.journal.best()
    if state.is_over:
        _say(f"over: {state.reason}")
    else:
        _say(f"stopped; go on with: taskweaver search --resume {places.folder.name}")
    if best is None:
        _say("no node measured anything; the report says why", "yellow")
    else:
        _say(f"best: {_line(best, state.journal)}", "green")
    _say(f"report: {places.folder / 'report.md'}")
    _say(f"page:   {places.folder / 'tree.html'}")
    return 0 if best is not None else 1


def _say(text: str, color: str | None = None) -> None:
    click.secho(safe(text), fg=None if is_plain(sys.stdout) else color)


def list_runs(project: Path | None) -> None:
    """Print a line for each run, the newest first."""
    with TaskWeaverApp(project) as app:
        found = runs(app)
        for places in found:
            try:
                state = _state(places)
            except SearchError as error:
                click.echo(safe(f"{places.folder.name}  {error}"))
                continue
            if state is None:
                continue
            best = state.journal.best()
            value = state.journal.objective.text(best.value) if best else "nothing measured"
            ended = "over" if state.is_over else "not over"
            began = time.strftime("%Y-%m-%d %H:%M", time.localtime(state.started_at))
            nodes = counted(len(state.journal), "node")
            click.echo(safe(f"{places.folder.name}  {began}  {nodes}  {value}  {ended}"))
        if not found:
            _say("There are no runs yet. Begin one: taskweaver search idea.md")


def show_run(project: Path | None, run: str) -> None:
    """Print the tree of a run."""
    with TaskWeaverApp(project) as app:
        places = find_run(app, run)
    state = _required(places)
    journal = state.journal
    waiting = [(0, node) for node in reversed(journal.nodes) if node.parent is None]
    while waiting:
        depth, node = waiting.pop()
        click.echo(f"{'  ' * min(depth, 20)}{_line(node, journal)}")
        waiting += [(depth + 1, child) for child in reversed(journal.children(node.id))]
    for said in findings.overruled(journal):
        _say(said)
    for passed in state.passed:
        _say(f"{passed.state.label}: {passed.reason}")


def write_report(project: Path | None, run: str) -> None:
    """Write the results of a run anew."""
    with TaskWeaverApp(project) as app:
        places = find_run(app, run)
    _say(f"report: {results_of(places)}")


def open_page(project: Path | None, run: str) -> None:
    """Open the page of a run."""
    with TaskWeaverApp(project) as app:
        places = find_run(app, run)
    page = places.folder / "tree.html"
    if not page.is_file():
        results_of(places)
    _say(str(page))
    click.launch(page.as_uri())


def _state(places: RunPlaces) -> RunState | None:
    return fold(read_log(places.log))


def _required(places: RunPlaces) -> RunState:
    state = _state(places)
    if state is None:
        raise SearchError(f"The run {places.folder.name} has not begun.")
    return state


def session_of(project: Path | None, node: str) -> str:
    """Make a session that goes on from a node, and return its id."""
    with TaskWeaverApp(project) as app:
        return session_on_node(app, node)
