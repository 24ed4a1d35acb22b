"""Searches run from the command line: their progress and their results."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import click

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.open_app import open_app
from taskweaver.cli.printing import print_table, say, tell
from taskweaver.cli.search.search_options import SearchOptions
from taskweaver.cli.signals import handling
from taskweaver.console.terminal.surface import is_plain
from taskweaver.console.terminal.text import depth_first
from taskweaver.treesearch.engine.coordinator import Changed
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.runlog import RunState, fold, is_worked_on, read_log
from taskweaver.treesearch.reports.run_results import write_results
from taskweaver.treesearch.service import (
    find_run,
    report_run,
    resume_search,
    runs,
    start_search,
)
from taskweaver.utils.system.installation import own_command
from taskweaver.utils.text import counted

_STOPPED = "stopped"
_STATUS_S = 10.0
"""Time between two lines that say what runs."""


def search_and_show(
    project: Path | None, options: SearchOptions, *, is_plain: bool, is_owned: bool = False
) -> int:
    """Search, show the progress, and return the exit status.

    One that is owned by another program stops when its standard input ends, which also happens
    when that program is killed.

    Returns:
        0 when a node measured something, else 1.

    Raises:
        TaskWeaverError: If the project, the run or the idea cannot be used.
    """
    with open_app(project) as app:
        tell(*app.warnings)
        if options.note:
            say(options.note, "yellow")
        if options.resume is not None:
            search = resume_search(app, options.resume, _settings(app, options))
        else:
            assert options.idea is not None
            search = start_search(
                app,
                options.idea,
                _settings(app, options),
                name=options.name,
                index=options.index,
                memory_db=options.memory_db,
            )
        with search:
            _introduce(app, search)
            with _shown(search, plain=is_plain) as (changed, note), _stopping(search, note):
                if is_owned:
                    Thread(target=_stop_with_input, args=(search,), daemon=True).start()
                search.run(changed)
            say("writing the report ...")
            write_results(search.places, search.state, search.budget, search.store)
        return _conclude(project, search)


def _settings(app: TaskWeaverApp, options: SearchOptions) -> dict[str, Any]:
    """Return the settings of a run, with the models whose names are aliases of the project."""
    aliases = app.config.get_dict("ext_llms.llm_configs")
    for name in sorted({*options.models.values()} - aliases.keys()):
        say(f"not used: the model {name}, which ext_llms.llm_configs does not have", "yellow")
    known = {key: name for key, name in options.models.items() if name in aliases}
    return {**known, **options.settings}


def _introduce(app: TaskWeaverApp, search: Search) -> None:
    say(f"run: {search.places.folder}")
    model = search.services.announcement if not search.is_embedded else "model: built-in proposer"
    say(model if search.is_remote else f"{model}; sandbox: {app.sandbox}")
    objective = search.objective
    say(f"optimises {objective.name}, {'higher' if objective.maximize else 'lower'} is better")
    for note in search.notes:
        say(note, "yellow")
    known = len(search.state.journal)
    if search.state.is_over:
        say("it is over already: its results are written anew")
    elif known:
        say(f"continues after {counted(known, 'node')}")


def _stopping(search: Search, tell: Callable[[str], None]) -> AbstractContextManager[None]:
    """Let the first Ctrl-C stop the search cleanly, and a second Ctrl-C at once."""

    def stop() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tell("stopping: what is being tried is given up, the rest is kept ...")
        search.stop()

    return handling(signal.SIGINT, stop)


def _stop_with_input(search: Search) -> None:
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    search.stop()


@contextmanager
def _shown(search: Search, *, plain: bool) -> Iterator[tuple[Changed, Callable[[str], None]]]:
    """Yield a callback for changes, and a function that prints lines meanwhile.

    It draws a live tree, or prints a line for each node.
    """
    if not plain and not is_plain(sys.stdout) and sys.stdout.isatty():
        from taskweaver.cli.search.search_tree import live_view

        with live_view(search) as view:
            yield view.changed, view.say
        return
    yield _PlainView(search).changed, say


class _PlainView:
    """Prints a line for each node that ended and each remark, and now and then what runs."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._seen = {node.id for node in search.state.journal.nodes}
        self._remarks = len(search.state.remarks)
        self._last = time.monotonic()

    def changed(self, state: RunState) -> None:
        """Print what is new."""
        from taskweaver.cli.search.search_tree import snapshot, status_line

        ended = [node for node in state.journal.finished if node.id not in self._seen]
        for node in ended:
            self._seen.add(node.id)
            say(_marked(node, state.journal))
        for remark in state.remarks[self._remarks :]:
            say(remark, "yellow")
        self._remarks = len(state.remarks)
        if state.journal.running and time.monotonic() - self._last >= _STATUS_S:
            self._last = time.monotonic()
            say(status_line(snapshot(self._search, state)))


def _line(node: Node, journal: Journal) -> str:
    value = journal.objective.text(node.value) if node.is_good else str(node.status)
    name = " fresh" * node.is_fresh + (f" {node.name}" if node.name else "")
    origin = f" of {node.parent}" if node.parent else ""
    why = f" ({node.error.kind})" if node.error else ""
    return f"{node.id} {node.kind}{name}{origin}: {value}{why}"


def _marked(node: Node, journal: Journal) -> str:
    return f"{_line(node, journal)}  {run_statistics.standing(journal, node)}".rstrip()


def _conclude(project: Path | None, search: Search) -> int:
    state, places = search.state, search.places
    best = state.journal.best()
    say(_ending(project, places, state))
    if best is None:
        say("no node measured anything; the report says why", "yellow")
        modules = run_statistics.missing_modules(state.journal)
        if modules:
            say(f"modules that are not installed here: {', '.join(modules[:8])}", "yellow")
    else:
        standing = run_statistics.standing(state.journal, best)
        say(f"{standing}: {_line(best, state.journal)}", "green")
        again = run_statistics.reached(state.journal, best)
        if again != state.journal.objective.text(best.value):
            say(f"      all its runs: {again}", "green")
        say(run_statistics.confirmation(state.journal), "green")
        say(run_statistics.certainty(state.journal))
    say(f"report: {places.folder / 'report.md'}")
    say(f"page:   {places.folder / 'tree.html'}")
    return 0 if best is not None else 1


def list_runs(project: Path | None) -> None:
    """Print a line for each run, the newest first."""
    with open_app(project) as app:
        if not app.discover_app_dir(app.app_dir)[1]:  # no runs: that is often the mistake
            tell(app.warnings[0])
        rows = [row for places in runs(app) if (row := _row(places))]
    print_table("", ("run", "began", "nodes", "best", "state"), rows)
    if not rows:
        say(
            f"There are no runs yet. Begin one: {own_command('search', 'idea.md', project=project)}"
        )
    elif any(row[-1] == _STOPPED for row in rows):
        say(f"continue a stopped one: {own_command('search', '--resume', 'RUN', project=project)}")


def _row(places: RunPlaces) -> tuple[str, ...]:
    """Return the columns of a run in the list, or an empty row before the run has begun."""
    try:
        state = fold(read_log(places.log))
    except SearchError as error:
        return places.folder.name, "", "", "", str(error)
    if state is None:
        return ()
    best = state.journal.best()
    value = run_statistics.reached(state.journal, best) if best else "nothing measured"
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(state.started_at))
    nodes = counted(len(state.journal), "node")
    return places.folder.name, began, nodes, value, _status(places, state)


def _status(places: RunPlaces, state: RunState) -> str:
    if state.is_over:
        return "over"
    return "running now" if is_worked_on(places.log) else _STOPPED


def _ending(project: Path | None, places: RunPlaces, state: RunState) -> str:
    status = _status(places, state)
    if state.is_over:
        return f"over: {state.reason}"
    if status == _STOPPED:
        resume = own_command("search", "--resume", places.folder.name, project=project)
        return f"stopped; continue with: {resume}"
    return status


def show_run(project: Path | None, run: str) -> None:
    """Print the tree of a run."""
    with open_app(project) as app:
        places = find_run(app, run)
    state = fold(read_log(places.log))
    if state is None:
        raise SearchError(f"The run {places.folder.name} has not begun.")
    journal = state.journal
    roots = [node for node in journal.nodes if node.parent is None]
    for depth, node in depth_first(roots, lambda node: journal.children(node.id)):
        branch = f"  (memory branch {node.branch})" if node.branch not in {"", node.id} else ""
        say(f"{'  ' * min(depth, 20)}{_marked(node, journal)}{branch}")
    for said in (*run_statistics.overruled(journal), *state.remarks):
        say(said)
    for passed in state.passed:
        say(f"{passed.state.title}: {passed.reason}")
    say(_ending(project, places, state))


def write_report(project: Path | None, run: str) -> None:
    """Write the results of a run anew."""
    with open_app(project) as app:
        say(f"report: {report_run(app, find_run(app, run))}")


def open_page(project: Path | None, run: str) -> None:
    """Open the page of a run."""
    with open_app(project) as app:
        places = find_run(app, run)
        page = places.folder / "tree.html"
        if not page.is_file():
            report_run(app, places)
    say(str(page))
    click.launch(page.as_uri())
