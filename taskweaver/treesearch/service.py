"""Opens searches for an application: the run's own settings go before the project's."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.common import Manager
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.services import ModelServices
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.round import Round
from taskweaver.session.errors import SessionBusy, SessionInUse
from taskweaver.session.session import Session
from taskweaver.session.storage.layout import CHAT, RUN
from taskweaver.session.storage.stored_sessions import NAME
from taskweaver.session.storage.workdir import copy_working_folder
from taskweaver.treesearch.engine.search import Machine, Search
from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.execution.results import keep_evaluator
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import read_idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeStatus, Objective
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.run_folder import (
    discard_run,
    load_config,
    new_run,
    place_memory,
    save_config,
)
from taskweaver.treesearch.record.runlog import fold, read_log
from taskweaver.treesearch.reports.run_results import results_of
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.platform import require_linux

_MOST_COPIED = 4 << 30
_QUIET = MemoryConfig(memory_log_enabled=False)


def start_search(
    app: TaskWeaverApp,
    idea: Path,
    settings: Mapping[str, Any] | None = None,
    *,
    name: str = "",
    index: int = 0,
    memory_db: Path | None = None,
) -> Search:
    """Begin a run, which `Search.run` works on. Close the search.

    Args:
        app: The application; it must stay open as long as the search.
        idea: The idea, Markdown or JSON.
        settings: Configuration keys of this run, before the project's.
        name: Name of the run; empty makes one.
        index: Which idea of a JSON list.
        memory_db: File of its memory, which is made; None keeps it in the run's folder.

    Raises:
        SearchError: If the idea cannot be read, no model can work on it, or `memory_db` is there
            already or cannot be made.
        ConfigError: If a setting is of the wrong type.
        ModelError: If the model cannot be reached as configured.
        NeedsLinux: If this is another system.
    """
    require_linux("A search")
    values = dict(settings or {})
    src = settled_config(app.config, values)
    config = SearchConfig(src)
    if memory_db is not None and not config.has_memory:
        raise SearchError("A run without memory has none to keep.", "Leave --memory_db out.")
    found = read_idea(idea, index)
    places = new_run(config, found, name)
    try:
        if found.evaluation:
            keep_evaluator(found.evaluation, idea.parent, places.evaluator)
        if memory_db is not None:
            place_memory(places, memory_db)
        save_config(places, values)
        return Search(_machine(app, src), places, config)
    except BaseException:
        discard_run(places)
        raise


def resume_search(
    app: TaskWeaverApp, run: str, settings: Mapping[str, Any] | None = None
) -> Search:
    """Open a run to continue it, with the settings it was started with and further ones.

    Args:
        app: The application.
        run: Name of the run, the beginning of it, or ``latest``.
        settings: Configuration keys, before those it was started with.

    Raises:
        SearchError: If the run does not exist, or cannot be opened.
        RunInUse: If another process works on it.
        ConfigError: If a setting is of the wrong type.
    """
    places = find_run(app, run)
    (before, foreign), given = load_config(places), dict(settings or {})
    lost = [name for name in foreign if name not in given]
    if lost:
        raise SearchError(
            f"The run's folder was made elsewhere, and {', '.join(lost)} in its config.json"
            " could give the search more than you know of.",
            "Read it and give them again, such as --resources FILE.",
        )
    values = before | given
    src = settled_config(app.config, values)
    config, earlier = SearchConfig(src), SearchConfig(settled_config(app.config, before))
    if (config.is_script, config.seed) != (earlier.is_script, earlier.seed):
        raise SearchError(
            "The seed and the phase mode of a run that has begun cannot be changed.",
            "Begin a new run with them.",
        )
    search = Search(_machine(app, src), places, config)
    try:
        save_config(places, values)  # only now: another process may have it, a value be wrong
    except BaseException:
        search.close()
        raise
    return search


def report_run(app: TaskWeaverApp, places: RunPlaces) -> Path:
    """Write the results of a run anew, and return the report.

    Raises:
        SearchError: If there is none.
    """
    return results_of(places, _config_of(app, places))


def allowance_of(app: TaskWeaverApp, places: RunPlaces) -> tuple[int, float, int, float]:
    """Return the most nodes, seconds, tokens and money of a run. 0 is no limit.

    Raises:
        SearchError: If its configuration cannot be read.
    """
    return _config_of(app, places).allowance


def _config_of(app: TaskWeaverApp, places: RunPlaces) -> SearchConfig:
    return SearchConfig(settled_config(app.config, load_config(places)[0]))


def runs(app: TaskWeaverApp) -> list[RunPlaces]:
    """Return the runs of a project, the newest first."""
    folder = SearchConfig(app.config).folder
    found = [RunPlaces(path.parent) for path in folder.glob("*/journal.jsonl")]
    return sorted(found, key=lambda places: places.log.stat().st_mtime, reverse=True)


def find_run(app: TaskWeaverApp, run: str) -> RunPlaces:
    """Return the run of a name, of the one name that begins so, or the newest (``latest``).

    Raises:
        SearchError: If there is none, or more than one.
    """
    known = runs(app)
    if run == "latest" and known:
        return known[0]
    exact = [places for places in known if places.folder.name == run]
    fitting = exact or [places for places in known if places.folder.name.startswith(run)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(places.folder.name for places in (fitting or known)[:10]) or "none"
    problem = "fits several runs" if fitting else "is no run"
    raise SearchError(f"{run!r} {problem}. There are: {names}.")


def settled_config(src: AppConfigSource, values: Mapping[str, Any]) -> AppConfigSource:
    """Return a configuration with the values of a run before those of the project.

    Raises:
        ConfigError: If a value is of the wrong type.
    """
    own = src.clone()
    for name, value in values.items():
        own.set_config_value(name, "enum", value, source="override")
    return own


def _machine(app: TaskWeaverApp, src: AppConfigSource) -> Machine:
    injector = app.app_injector
    return Machine(
        src,
        injector.get(ModelServices),
        injector.get(Manager),  # type: ignore[type-abstract]  # bound to a maker in AppModule
        injector.get(SandboxRequest),
        injector.get(TelemetryLogger),
    )


def node_round(places: RunPlaces, node: Node) -> Round | None:
    """Return the stored round of a node that has ended, or None if the run keeps no round of it."""
    if not node.branch or not places.memory.exists():
        return None
    with BranchedMemory(places.memory, _QUIET) as store:
        return BranchLog(store, node.branch).newest() if node.branch in store else None


def session_on_node(
    app: TaskWeaverApp, node: str, *, is_detached: bool = False
) -> tuple[Session, str]:
    """Fork a node into a branch of its run, which is opened as a session: the current branch.

    Conversation, memory and files go along, and in single mode the variables.

    Args:
        app: The application.
        node: ``RUN/NODE``, for example ``latest/n0007``; ``RUN/best`` is the best node, and an
            earlier fork goes on under its own name, such as ``latest/n0007-chat``.
        is_detached: Whether to make a separate session instead, with copies of all but the
            variables. A run that another process works on is always continued so.

    Returns:
        The session, and the name of the branch in it.

    Raises:
        SearchError: If the node does not exist, or has no memory to continue from.
        SessionError: If the files cannot be copied.
        SessionBusy: If the node is being forked elsewhere in this process.
    """
    run, _, wanted = node.rpartition("/")
    places = find_run(app, run or "latest")
    branch, name = _branch_of(places, wanted)
    id_ = places.folder.name
    if not is_detached and app.session_manager.folder_of(id_) == places.folder:
        with suppress(SessionInUse):
            session = app.get_session(id_)
            chat = session.at(branch).fork(name, is_similar=True) if name else branch
            with suppress(SessionBusy):  # another chat is at work
                session.checkout(chat)
            return session, chat
    return app.get_session(_detached(app, places, branch)), CHAT.root


def _branch_of(places: RunPlaces, wanted: str) -> tuple[str, str]:
    """Return the branch of a node with the name of a fork, or an earlier fork without one."""
    state = fold(read_log(places.log))
    journal = state.journal if state else Journal(Objective())
    best = journal.best()
    found = best.id if wanted == "best" and best else wanted
    if found not in journal:
        if places.memory.exists() and NAME.fullmatch(found) and not RUN.is_of_search(found):
            return found, ""
        names = ", ".join([n.id for n in journal.nodes][:10]) or "none yet"
        raise SearchError(f"The run {places.folder.name} has no node {wanted!r}; it has {names}.")
    if journal[found].status is NodeStatus.RUNNING:
        raise SearchError(f"{found} has not finished; ask again when it has.")
    if not journal[found].branch:
        raise SearchError(f"{found} has no memory: it holds no conversation to continue.")
    if not places.memory.exists():
        raise SearchError(f"The memory of the run is gone: {places.memory.resolve()}.")
    return journal[found].branch, f"{found}-chat"


def _detached(app: TaskWeaverApp, places: RunPlaces, branch: str) -> str:
    """Make a session of its own from a branch of a run; return the id."""
    id_ = create_id()
    folder = app.session_manager.sessions_folder / id_
    folder.mkdir(mode=0o700, parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "branch.jsonl"
        with BranchedMemory(places.memory, _QUIET) as store:
            store.export(file, branch, is_private=True)
        with BranchedMemory(folder / CHAT.memory) as own:
            own.import_(file)
            if branch != CHAT.root:
                own[branch].fork(CHAT.root)
    workspace = places.folder / RUN.working_folder(branch)
    if workspace.is_dir() and not workspace.is_symlink():  # code may have put a link there
        cwd = folder / CHAT.working_folder(CHAT.root)
        cwd.mkdir()
        cannot = system_errors(f"{workspace} cannot be opened")
        with cannot, Folder.at(workspace) as source, Folder.at(cwd.resolve()) as target:
            copy_working_folder(source, target, limit_bytes=_MOST_COPIED)
    return id_
