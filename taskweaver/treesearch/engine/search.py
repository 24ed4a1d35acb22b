"""A search: a run that is open, and the wiring of its parts."""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from typing import Any, Self

from taskweaver.ces.common import Manager as KernelManager
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.ces.state_folder import StateFolder
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.branched.run.ingest import ingest_environment, ingest_idea_md
from taskweaver.memory.branched.run.resources import update_resource_snapshot_if_changed
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched_config import read_memory_config
from taskweaver.module.event_emitter import PostEventType, SessionEventEmitter, TaskWeaverEvent
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.round_states import RoundStates, Snapshots
from taskweaver.session.storage.event_log import EventLog
from taskweaver.session.storage.layout import RUN
from taskweaver.session.storage.store import SessionFiles
from taskweaver.treesearch.agent.events import ON_THE_BOARD, RunEvents, shown_elsewhere
from taskweaver.treesearch.agent.prompt_files import PromptFiles
from taskweaver.treesearch.agent.run_meter import RunMeter, check_prices
from taskweaver.treesearch.embedded.built_in import model_for, needs_of
from taskweaver.treesearch.engine.change_claims import ChangeClaims
from taskweaver.treesearch.engine.coordinator import Changed, Coordinator
from taskweaver.treesearch.engine.plots import LaterPlots
from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.engine.stage_questions import StageAgent
from taskweaver.treesearch.engine.stage_transition import StageTransition
from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.execution.executors.local import open_executor
from taskweaver.treesearch.execution.executors.protocol import JobCall
from taskweaver.treesearch.execution.machine import VISIBLE_GPUS, devices_of, gpus
from taskweaver.treesearch.execution.resources import read_materials
from taskweaver.treesearch.execution.results import Evaluator, kept_evaluator
from taskweaver.treesearch.execution.scripts import ScriptRunner
from taskweaver.treesearch.execution.timing import MeasuringSlots, check_host_turn
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import Idea, parse_idea
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.record.places import ROOT_BRANCH, WORKSPACES, RunPlaces
from taskweaver.treesearch.record.runlog import RunLog, RunState, fold, reopen
from taskweaver.treesearch.reports.run_results import earlier_runs
from taskweaver.utils.files import read_text

_OFFLINE = "builtin/offline"
_CHECK_S = 120.0
_GROWING = {PostEventType.post_message_update, PostEventType.post_execution_output}
_TAIL_CHARS = 200
_MOST_SNAPSHOTS = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """Services that an application lends to a search: models, kernels for scripts, a sandbox.

    The sandbox is chosen anew on each machine that runs commands.
    """

    src: AppConfigSource
    services: ModelServices
    manager: KernelManager
    sandbox: SandboxRequest
    logger: TelemetryLogger


class Search:
    """A run that is open. Use it as a context manager, or call `close`.

    Attributes:
        places: Its files.
        state: Its journal and stage.
        objective: The metric it optimises.
        notes: Remarks for the user, a line each.
        budget: Its budget.
        services: Its models, whose calls are limited and counted.
        is_embedded: Whether its model is a built-in proposer.
        store: Its memory; None without.
        worker: Facts about the machines that run its commands.
        running: Phase of each node that runs, when it began, and the end of its text.
        event_emitter: Sends the events of the nodes' rounds to listeners, as that of a session.
        events: Keeps the events in the run's logs, where other processes read them.
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
        self.running: dict[str, tuple[str, float, str]] = {}
        self.event_emitter = SessionEventEmitter(machine.logger)
        self.event_emitter.register(self)
        self._config = config
        self._machine = machine
        self._idea = _idea(places)
        self._files: SessionFiles | None = None
        with ExitStack() as stack:
            self._log = stack.enter_context(RunLog(places.log))
            with system_errors(f"{places.logs} cannot be made"):
                places.logs.mkdir(parents=True, exist_ok=True)
            self.events = EventLog(places.logs, machine.logger)
            stack.callback(self.events.close)
            self.event_emitter.register(self.events)
            self.state = fold(self._log.entries) or self._begin()
            if self.state.counted_at:  # killed: nobody worked on it since
                self._log.add("paused", elapsed=self.state.seconds, at=0.0)
            self.objective = self.state.journal.objective
            self.budget = Budget(*config.allowance, self.state.seconds, self.state.spent)
            services, self.is_embedded = self._models(stack)
            for alias in astuple(config.models):
                services.get(alias)  # an unknown name fails now, not after a run
            self._executor = open_executor(config, machine.sandbox, places.folder)
            stack.callback(self._executor.close)
            self.worker = self._executor.probe()
            self.notes += self._executor.notes
            self._check_needs()
            self.services = self._metered(services)
            self._memory_api = LLMApi(self.services)
            self.store = self._memory(stack) if config.has_memory else None
            parts = self._parts(stack)
            self._agent = StageAgent(parts, LLMApi(self.services))
            self._reopen_if_there_is_more()
            self._coordinator = self._wired(parts)
            self._stack = stack.pop_all()

    def _check_needs(self) -> None:
        """Check for what attempts need where they run: packages, and the turn of timed ones."""
        sandbox = self.worker.sandbox
        has_network = sandbox is None or sandbox.has_network or bool(sandbox.allowed_hosts)
        can_install = has_network and not self._config.is_script and not self.is_embedded
        needs = needs_of(self._idea, is_embedded=self.is_embedded)
        if needs and not can_install:
            self._executor.submit(JobCall(needs.check, key="needs"), _CHECK_S).result()
        if self._config.is_timed(self.objective):
            self._executor.submit(JobCall(check_host_turn, key="turn"), _CHECK_S).result()

    def _reopen_if_there_is_more(self) -> None:
        """Reopen a run that had used its budget up, where it has more now."""
        if self.state.is_spent and not self.budget.why_spent(self.state.journal.attempts):
            self._log.add("reopened")
            reopen(self.state)

    def _begin(self) -> RunState:
        objective, note = self._idea.objective()
        self.notes += [note] if note else []
        if self._config.num_seeds:
            self.notes.append(
                "At the end, the best program and the first draft are measured on up to"
                f" {self._config.num_seeds + 1} fresh seeds each, if their figures scatter and time"
                " is left."
            )
        self._log.add(
            "run",
            objective=asdict(objective),
            title=self._idea.title,
            seed=self._config.seed,
            at=time.time(),
        )
        state = fold(self._log.entries)
        assert state is not None
        return state

    def _models(self, stack: ExitStack) -> tuple[ModelServices, bool]:
        """Return the models; where none is configured, a built-in one that knows the idea."""
        machine = self._machine
        if machine.services.get().model != _OFFLINE:
            return stack.enter_context(machine.services.patient(self._config.first_token_s)), False
        model = model_for(self._idea)
        if model is None:
            raise SearchError(
                "No model is configured, and no built-in one knows this idea.",
                "Connect one with `taskweaver setup`, or start an example idea on the page of"
                " `taskweaver web`.",
            )
        src = machine.src.clone()
        src.set_config_value("llm.api_type", "str", "function", source="override")
        services = ModelServices(src, function=model, tracing=machine.services.tracing)
        stack.callback(services.close)
        return services, True

    def _metered(self, services: ModelServices) -> ModelServices:
        """Return the models, whose calls are limited and counted."""
        config = self._config
        if config.cost_limit and not self.is_embedded:
            check_prices(services)
        meter = RunMeter(self.budget, self._log, config.model_calls, is_free=self.is_embedded)
        return services.metered(meter)

    def _memory(self, stack: ExitStack) -> BranchedMemory:
        config = read_memory_config(self._machine.src)
        folder = self.places.memory.parent
        config = replace(config, log_dir=folder, plain_kinds=shown_elsewhere() | ON_THE_BOARD)
        api = self._memory_api

        def ask(prompt: str) -> str:
            return api.summarize("Answer what is asked below.", prompt)

        text_model = None if self.is_embedded else ask
        nodes = [node for node in self.state.journal.nodes if node.branch]
        kept: set[str] = set()
        if self.places.memory.exists() or not nodes:
            run = self.places.folder
            self._files = SessionFiles(run.name, run, config, RUN, text_model)
            stack.callback(self._files.close)
            kept |= set(self._files.store)
        lost = [node.id for node in nodes if node.branch not in kept]
        if lost:
            raise SearchError(
                f"{self.places.memory.resolve()} does not know {', '.join(lost[:5])} of the run.",
                "Restore the file, or go on with --no-memory.",
            )
        assert self._files is not None
        store = self._files.store
        ingest_idea_md(store[ROOT_BRANCH], self.places.idea)
        return store

    def _scripts(self, stack: ExitStack) -> ScriptRunner:
        folder = self.places.folder / WORKSPACES
        folder.mkdir(exist_ok=True)
        config, files, journal = self._config, self._files, self.state.journal
        devices = devices_of(os.environ.get(VISIBLE_GPUS, ",".join(gpus())))
        new = partial(self._machine.manager.get_session_client, session_dir=folder, devices=devices)

        def end_of(node_id: str) -> tuple[list[str], str]:
            branch = journal[node_id].branch
            rounds = files.round_ids(branch) if files and branch else []
            return [branch or node_id], (rounds or [node_id])[-1]

        anchor = new("search")  # it only sleeps: the sandbox, and snapshots in it, live as long
        stack.callback(anchor.stop)
        anchor.start()
        # A run without memory stores nothing.
        limit_bytes = AppSessionConfig(self._machine.src).state_limit_bytes if files else 0
        stored = StateFolder(self.places.folder / "state", limit_bytes)
        in_use = partial(files.manifests_in_use, stored) if files else frozenset
        # A number, as what the snapshots of ended kernels take up is not measured.
        most = max(_MOST_SNAPSHOTS, config.workers)
        snapshots = Snapshots(math.inf if config.is_forking else 0, most)
        states = RoundStates(snapshots, stored, self._machine.logger, in_use)
        stack.callback(states.close)
        return ScriptRunner(new, folder, config.is_forking, config.limits.run_s, states, end_of)

    def _parts(self, stack: ExitStack) -> RunParts:
        """Return the parts of the run that its attempts share."""
        config = self._config
        scripts = self._scripts(stack) if config.is_script else None
        materials = read_materials(config.resources, self.store)
        earlier, history = earlier_runs(self.places, self._idea)
        return RunParts(
            config=config,
            places=self.places,
            journal=self.state.journal,
            idea=self._idea,
            environment=self._environment(),
            earlier=earlier,
            history=history,
            evaluator=self._evaluator(),
            budget=self.budget,
            store=self.store,
            prompts=PromptFiles(config.prompt_dir),
            services=self.services,
            is_embedded=self.is_embedded,
            claims=ChangeClaims(self.state.journal),
            executor=self._executor,
            worker=self.worker,
            scripts=scripts,
            materials=materials,
            slots=MeasuringSlots(is_timed=config.is_timed(self.objective)),
            emitter=self.event_emitter,
        )

    def _evaluator(self) -> Evaluator | None:
        line = self._idea.evaluation
        if not line:
            return None
        if self._config.is_script:
            raise SearchError(
                "The idea names an evaluator, and scripts in kernels measure themselves.",
                "Search with search.phase_mode = split.",
            )
        return kept_evaluator(line, self.places.evaluator)

    def _environment(self) -> dict[str, Any]:
        """Return facts about the machine and the resources, noted in the memory too."""
        environment = {**self.worker.environment, "network": _network(self.worker.sandbox)}
        if self.store is None:
            return environment
        root, folder = self.store[ROOT_BRANCH], self.store.path.parent
        ingest_environment(root, environment)
        if self._config.resources is not None:
            workspaces = self.places.folder / WORKSPACES
            update_resource_snapshot_if_changed(
                root, self._config.resources, workspaces, folder=folder
            )
        return environment

    def _wired(self, parts: RunParts) -> Coordinator:
        """Return the coordinator, with all that it needs."""
        events = RunEvents(self.store, self.state.journal)
        transition = StageTransition(self.state, self._log, events, self._agent)
        return Coordinator(
            parts, self._config, self.budget, self.state, self._log, transition, LaterPlots(parts)
        )

    @property
    def is_remote(self) -> bool:
        """Whether commands run on other machines, which its notes describe."""
        return self._config.executor != "local"

    def handle(self, event: TaskWeaverEvent) -> None:
        """Note phase and text of a node, whose name its branch begins with."""
        node_id = event.branch.partition("-")[0]
        if event.t is PostEventType.post_status_update:
            self.running[node_id] = event.msg, time.monotonic(), ""
        elif event.t in _GROWING and node_id in self.running:
            phase, since, before = self.running[node_id]
            self.running[node_id] = phase, since, f"{before}{event.msg}"[-_TAIL_CHARS:]

    def run(self, changed: Changed) -> None:
        """Work on it until it is over, stopped, or has used its budget up.

        Where it is over already, the plots that still wait are drawn. `changed` is called, in this
        thread, after each change of its state.

        Raises:
            SearchError: If it cannot go on.
            ModelError: If the model cannot be asked.
        """

        def show(state: RunState) -> None:
            self.events.flush()
            changed(state)

        if not self.state.is_over or self.state.has_waiting_plots:
            self._coordinator.run(show)

    def stop(self) -> None:
        """Stop soon, from any thread; `run` does nothing when it comes later."""
        self._memory_api.close()  # a text it cannot have summed up is cut
        self._coordinator.stop()
        self._agent.api.close()

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
    with system_errors("The run's idea cannot be read"):
        return parse_idea(read_text(places.idea))


def _network(sandbox: SandboxPolicy | None) -> str:
    """Return a description of the network that commands can reach."""
    if sandbox is None:
        return "as this machine has it"
    if sandbox.has_network:
        return "in the download phase only"
    hosts = ", ".join(sandbox.allowed_hosts)
    return f"in the download phase, only {hosts}" if hosts else "none, in no phase"
