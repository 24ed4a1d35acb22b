"""A search: the folder of a run, and all that works on it while it is open."""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from taskweaver.ces.common import Manager
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.memory.branched.run.environment import collect_environment, ingest_environment
from taskweaver.memory.branched.run.ingest import ingest_idea_md
from taskweaver.memory.branched.run.resources import update_resource_snapshot_if_changed
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched_config import read_memory_config
from taskweaver.treesearch.agent.prompt_files import PromptFiles
from taskweaver.treesearch.agent.run_meter import RunMeter, check_prices
from taskweaver.treesearch.agent.toolbox import Claims, Toolbox
from taskweaver.treesearch.embedded.choice import model_for, needs_of
from taskweaver.treesearch.engine.coordinator import Changed, Coordinator
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.gpus import VARIABLE, devices_of, gpus
from taskweaver.treesearch.execution.materials import read_materials
from taskweaver.treesearch.execution.scripts import ScriptRunner
from taskweaver.treesearch.execution.worker_pool import WorkerPool
from taskweaver.treesearch.model.budget import Budget
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import Idea, parse_idea
from taskweaver.treesearch.record.places import ROOT_BRANCH, WORKSPACES, RunPlaces
from taskweaver.treesearch.record.runlog import RunLog
from taskweaver.treesearch.record.state import RunState, fold, reopen
from taskweaver.treesearch.reports.history import earlier_runs
from taskweaver.utils.files import (
    PRIVATE,
    PRIVATE_FOLDER,
    read_text,
    write_text,
)

"""The branch of what concerns the whole run."""
_COMPILERS = ("gcc", "g++", "gfortran", "clang", "clang++", "nvcc", "icx", "rustc", "cc", "c++")
_OFFLINE = "builtin/offline"
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a search is given by the application.

    Attributes:
        src: The configuration.
        services: The models.
        manager: The owner of kernels, for scripts.
        sandbox: What commands may reach; None for no sandbox.
    """

    src: AppConfigSource
    services: ModelServices
    manager: Manager
    sandbox: SandboxPolicy | None


def new_run(config: SearchConfig, idea: Idea, name: str = "") -> RunPlaces:
    """Make the folder of a run, with its idea.

    Args:
        config: Says where runs are.
        idea: The idea.
        name: Name of the folder; empty makes one of the time and the title.

    Raises:
        SearchError: If there is one of this name, or it cannot be made.
    """
    slug = _SLUG.sub("_", idea.title.lower()).strip("_")[:40] or "run"
    stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H-%M-%S")
    chosen = name or f"{stamp}_{slug}"
    if Path(chosen).name != chosen or chosen in {".", ".."}:
        raise SearchError(f"{chosen!r} is no name of a run: give one without folders.")
    places = RunPlaces(config.folder / chosen)
    try:
        number = 1
        while not name and places.folder.exists():  # another began in the same second
            number += 1
            places = RunPlaces(config.folder / f"{chosen}-{number}")
        # Private: programs, prompts and outcomes are kept as they are.
        places.folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
        write_text(places.idea, idea.text)
    except FileExistsError as error:
        raise SearchError(
            f"There is a run called {chosen} already.", "Go on with it: search --resume."
        ) from error
    except OSError as error:
        raise SearchError(f"{places.folder} cannot be made: {error.strerror}.") from error
    return places


def place_memory(places: RunPlaces, file: Path) -> None:
    """Have a new run keep its memory in a file elsewhere; a link in the run's folder leads to it.

    Raises:
        SearchError: If there is such a file already, or it cannot be made.
    """
    file, link = file.resolve(), places.memory
    try:
        link.parent.mkdir()
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            raise SearchError(
                f"{file} is there already, and each run has a memory of its own.",
                "Name a file that is not there yet, or go on with its run: search --resume.",
            )
        # Of two runs that begin at once, one has it.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
        if file != link.resolve():
            link.symlink_to(file)
    except OSError as error:
        raise SearchError(f"{file} cannot be made: {error.strerror}.") from error


def discard_run(places: RunPlaces) -> None:
    """Remove a run that never began, with its memory wherever that is."""
    if places.memory.is_symlink():
        file = places.memory.resolve()
        for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            path.unlink(missing_ok=True)
    shutil.rmtree(places.folder, ignore_errors=True)


class Search:
    """A run that is open. Use it as a context manager, or call `close`.

    Attributes:
        places: Where its files are.
        state: Where it is.
        objective: What it optimises.
        notes: What the person should know, a line each.
    """

    def __init__(self, machine: Machine, places: RunPlaces, config: SearchConfig) -> None:
        """Open a run: a new one, or one to go on with.

        Raises:
            RunInUse: If another process works on it.
            SearchError: If it cannot be opened, or no model can work on it.
            ModelError: If the model cannot be reached as configured.
        """
        self.places = places
        self.notes: list[str] = []
        self._config = config
        self._machine = machine
        self._engine: Coordinator | None = None
        self._is_stopped = False
        self._stack = ExitStack()
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise

    def _open(self) -> None:
        config, machine = self._config, self._machine
        self.idea = _idea(self.places)
        self._log = self._stack.enter_context(RunLog(self.places.log))
        self.state = fold(self._log.entries) or self._begin()
        self.objective = self.state.journal.objective
        self.budget = self._budget()
        services, self.is_embedded = self._models(machine)
        if self.is_embedded or not self._can_install():
            needs_of(self.idea, is_embedded=self.is_embedded).check()
        services.get(config.vlm_alias)  # a name nobody knows is told now, not after a run
        self.services = self._metered(services)
        self._memory_api = LLMApi(self.services)
        self.store = self._memory() if config.has_memory else None
        workers = self._stack.enter_context(WorkerPool(config.workers, gpus()))
        scripts = self._scripts() if config.is_script else None
        environment = collect_environment() | {"network": _network(machine.sandbox)}
        if self.store is not None:
            ingest_environment(self.store[ROOT_BRANCH], environment)
        materials = read_materials(config.resources)
        if self.store is not None and config.resources is not None:
            workspaces = self.places.folder / WORKSPACES
            folder = self.store.path.parent
            update_resource_snapshot_if_changed(
                self.store[ROOT_BRANCH], config.resources, workspaces, folder=folder
            )
        self._reopen_if_there_is_more()
        self.running: dict[str, tuple[str, float]] = {}
        self.tools = Toolbox(
            config=config,
            places=self.places,
            idea=self.idea,
            services=self.services,
            is_embedded=self.is_embedded,
            prompts=PromptFiles(config.prompt_dir),
            store=self.store,
            workers=workers,
            scripts=scripts,
            sandbox=machine.sandbox,
            environment=environment,
            compilers=_compilers(),
            materials=materials,
            history=earlier_runs(self.places, self.idea),
            claims=Claims(self.state.journal.nodes),
            budget=self.budget,
            on_phase=self._on_phase,
        )

    def _can_install(self) -> bool:
        """Return whether attempts can install packages that are missing."""
        sandbox = self._machine.sandbox
        has_network = sandbox is None or sandbox.has_network or bool(sandbox.allowed_hosts)
        return has_network and not self._config.is_script

    def _budget(self) -> Budget:
        return Budget(*self._config.allowance, self.state.seconds, self.state.spent)

    def _reopen_if_there_is_more(self) -> None:
        """Go on with a run that had used up what it might, where it may use more now."""
        if not self.state.is_spent:
            return
        if not self.budget.why_spent(self.state.journal.attempts):
            self._log.add("reopened")
            reopen(self.state)

    def _begin(self) -> RunState:
        objective, note = self.idea.objective()
        self.notes += [note] if note else []
        self._log.add(
            "run",
            objective={
                "name": objective.name,
                "maximize": objective.maximize,
                "unit": objective.unit,
            },
            title=self.idea.title,
            seed=self._config.seed,
            at=time.time(),
        )
        state = fold(self._log.entries)
        assert state is not None
        return state

    def _models(self, machine: Machine) -> tuple[ModelServices, bool]:
        """Return the models; where none is configured, one of ours that knows the idea."""
        if machine.services.get().model != _OFFLINE:
            return machine.services, False
        model = model_for(self.idea)
        if model is None:
            raise SearchError(
                "No model is configured, and no built-in one knows this idea.",
                "Configure one (docs/models.md), or try an idea of project/ideas.",
            )
        src = machine.src.clone()
        src.set_config_value("llm.api_type", "str", "function", source="override")
        services = ModelServices(src, function=model, tracing=machine.services.tracing)
        self._stack.callback(services.close)
        return services, True

    def _metered(self, services: ModelServices) -> ModelServices:
        """Return the models, whose calls are limited and counted."""
        config = self._config
        if config.cost_limit and not self.is_embedded:
            check_prices(services)
        meter = RunMeter(self.budget, self._log, config.model_calls, is_free=self.is_embedded)
        return services.metered(meter)

    def _memory(self) -> BranchedMemory:
        config = read_memory_config(self._machine.src)
        folder = self.places.memory.parent
        config = replace(config, log_dir=folder)
        api = self._memory_api

        def ask(prompt: str) -> str:
            return api.summarize("Answer what is asked below.", prompt)

        text_model = None if self.is_embedded else ask
        store = BranchedMemory(self.places.memory, config, llm=text_model)
        self._stack.enter_context(store)
        root = store.root or store.create(ROOT_BRANCH, node_uid=ROOT_BRANCH, live=True)
        kept = set(store)
        lost = [n.id for n in self.state.journal.nodes if n.branch and n.branch not in kept]
        if lost:
            raise SearchError(
                f"{self.places.memory.resolve()} does not know {', '.join(lost[:5])} of the run.",
                "Restore the file, or go on with --no-memory.",
            )
        ingest_idea_md(root, self.places.idea)
        return store

    def _scripts(self) -> ScriptRunner:
        folder = self.places.folder / WORKSPACES
        folder.mkdir(exist_ok=True)
        config = self._config
        longest_s = config.limits.run_s
        visible = os.environ.get(VARIABLE, ",".join(gpus()))
        runner = ScriptRunner(
            self._machine.manager, folder, config.is_forking, longest_s, devices_of(visible)
        )
        self._stack.callback(runner.close)
        runner.start()
        return runner

    def _on_phase(self, node_id: str, phase: str) -> None:
        self.running[node_id] = (phase, time.monotonic())

    def run(self, changed: Changed) -> None:
        """Work on it until it is over, stopped, or has used up what it may.

        Args:
            changed: Told, in this thread, whenever it went on.

        Raises:
            SearchError: If it cannot go on.
            ModelError: If the model cannot be asked.
        """
        if self.state.is_over:
            return
        self._engine = Coordinator(self.tools, self.state, self._log, self.budget, changed)
        if self._is_stopped:
            self._engine.stop()
        self._engine.run()

    def stop(self) -> None:
        """Stop soon, from any thread; `run` does nothing when it comes later."""
        self._is_stopped = True
        self._memory_api.close()  # it cuts what it cannot have summed up
        if self._engine is not None:
            self._engine.stop()

    def close(self) -> None:
        """End all that works on it; safe to call again."""
        self._stack.close()

    def __enter__(self) -> Self:
        """Return the search itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _idea(places: RunPlaces) -> Idea:
    try:
        return parse_idea(read_text(places.idea))
    except (OSError, ValueError) as error:
        raise SearchError(f"The run's idea cannot be read: {error}.") from error


def _network(sandbox: SandboxPolicy | None) -> str:
    """Return what commands can reach, in words."""
    if sandbox is None:
        return "as this machine has it"
    if sandbox.has_network:
        return "in the download phase only"
    hosts = ", ".join(sandbox.allowed_hosts)
    return f"in the download phase, only {hosts}" if hosts else "none, in no phase"


def _compilers() -> tuple[str, ...]:
    return tuple(name for name in _COMPILERS if shutil.which(name))
