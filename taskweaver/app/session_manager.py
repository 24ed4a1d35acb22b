"""Builder and owner of sessions, by id."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from injector import Injector

from taskweaver.app.modules import ExecutionConfig, FoldersConfig, SessionModule, branch_module
from taskweaver.ces.common import Client, Manager, Snapshot
from taskweaver.ces.kernel.running import connection_file
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.api import LLMApi
from taskweaver.llm.prompts import PROMPTS_FILE
from taskweaver.llm.selection.config import embedding_model
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.config import ServerConfig
from taskweaver.mcp.servers import MCPServers
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched_config import read_memory_config
from taskweaver.memory.memory import Memory
from taskweaver.memory.vectors.embedders import embedder
from taskweaver.module.event_emitter import SessionEventEmitter, SessionEventType, TaskWeaverEvent
from taskweaver.role.errors import RoleError
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.registry.registry import RoleRegistry
from taskweaver.role.role import Role
from taskweaver.session.branches.parts import SessionMetadata, SessionParts
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.session.round_marks import RoundMarks
from taskweaver.session.session import Session
from taskweaver.session.spending import LimitsConfig, Spending
from taskweaver.session.storage.event_log import EventLog
from taskweaver.session.storage.facts import ProjectMemory
from taskweaver.session.storage.folder import MEMORY_FILE, require_plain_folder
from taskweaver.session.storage.layout import RUN, layout_of
from taskweaver.session.storage.store import SessionFiles
from taskweaver.session.storage.stored_sessions import (
    NAME,
    stored_session,
    stored_sessions,
)
from taskweaver.utils.ids import create_id
from taskweaver.utils.retrieval import Embedder

_LEADER = "planner"


@runtime_checkable
class SessionStore(Protocol):
    """Container of running sessions."""

    def get_session(self, session_id: str) -> Session | None:
        """Return a session, or None."""

    def set_session(self, session_id: str, session: Session) -> None:
        """Keep a session."""

    def remove_session(self, session_id: str) -> None:
        """Forget a session."""

    def has_session(self, session_id: str) -> bool:
        """Return whether a session is kept."""

    def list_all_session_ids(self) -> list[str]:
        """Return all ids."""


class InMemorySessionStore(dict[str, Session]):
    """Sessions in a dictionary."""

    get_session = dict.get
    set_session = dict.__setitem__
    has_session = dict.__contains__

    def list_all_session_ids(self) -> list[str]:
        """Return all ids."""
        return list(self)

    def remove_session(self, session_id: str) -> None:
        """Forget a session."""
        self.pop(session_id, None)


class _Forgetting:
    """Listener of a session, which at its end leaves the store and ends its own MCP servers."""

    def __init__(self, store: SessionStore, session: Session, servers: MCPServers | None) -> None:
        self._store = store
        self._session = session
        self._servers = servers

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""
        session_id = self._session.session_id
        is_end = event.t is SessionEventType.session_end
        if is_end and self._store.get_session(session_id) is self._session:
            self._store.remove_session(session_id)
        if is_end and self._servers is not None:
            self._servers.close()


class SessionManager:
    """Owner of the sessions of an application."""

    def __init__(
        self, session_store: SessionStore, injector: Injector, workspace: Path | None = None
    ) -> None:
        """Own the sessions in the application's workspace, or in one of a user's own.

        Args:
            session_store: Container of the sessions that run.
            injector: Parts of the application.
            workspace: Folder of the sessions and of the memory that they share; None takes the
                application's, whose runs of the tree search are sessions too.
        """
        self.session_store = session_store
        self.injector = injector
        folders = injector.get(FoldersConfig)
        self._workspace = workspace or folders.workspace
        self._runs = None if workspace else folders.runs
        self._is_closed = False
        self._resuming = threading.Lock()
        self._sharing = threading.Lock()
        self._project_memory: ProjectMemory | None = None

    def get_session(
        self, session_id: str | None = None, servers: Sequence[ServerConfig] = ()
    ) -> Session:
        """Return the session called `session_id`, or a new one.

        A session that is on disk and not open, as after a restart, is resumed. One that is opened
        now has MCP servers of its own beside the project's.

        Raises:
            SessionError: If the session does not exist.
            SessionInUse: If another process has it open.
            SessionClosed: If the manager was stopped.
            UnknownRole: If the configuration names a role that is not installed.
            RoleError: If a role cannot be used.
        """
        self._check_open()
        if session_id is None:
            return self._open(create_id(), servers)
        with self._resuming:  # so that two threads do not open one session twice
            session = self._running(session_id)
            if session is None and self._is_on_disk(session_id):
                session = self._open(session_id, servers)
        if session is None:
            raise SessionError(f"There is no session {session_id!r}, or it was stopped.")
        return session

    def create_session(self, session_id: str) -> Session:
        """Return a session of this id, made if missing, also if nothing was asked in the session.

        Raises:
            SessionError: If it cannot be one, or cannot be opened.
            SessionInUse: If another process has it open.
            SessionClosed: If the manager was stopped.
        """
        self._check_open()
        with self._resuming:
            return self._running(session_id) or self._open(session_id)

    def _running(self, session_id: str) -> Session | None:
        session = self.session_store.get_session(session_id)
        if session is None or not session.is_closed:
            return session
        self.session_store.remove_session(session_id)
        return None

    def _is_on_disk(self, session_id: str) -> bool:
        if not NAME.fullmatch(session_id):
            return False
        folder = self.folder_of(session_id)
        if layout_of(folder) is RUN:
            require_plain_folder(folder)
            return True
        return stored_session(folder) is not None

    def update_session(self, session: Session) -> None:
        """Keep a session under its id, in place of another session of that id."""
        self.session_store.set_session(session.session_id, session)

    def resume_session(self, session_id: str | None = None) -> Session:
        """Open a session that is on disk, unchanged. None takes the session that was used last.

        Raises:
            SessionError: If the session does not exist, or its folder is not used.
            StoreTooNew, StoreCorrupt, StoreUnwritable, StoreBusy: If its memory cannot be opened.
            SessionInUse: If another process, or this one, has it open; without an id, too.
            SessionClosed: If the manager was stopped.
        """
        self._check_open()
        folder = self.sessions_folder
        if session_id is None:
            found = stored_sessions(folder)
            if not found:
                raise SessionError("There is no session to resume yet.")
            session_id = found[0].session_id
        elif not self._is_on_disk(session_id):
            raise SessionError(f"There is no session {session_id!r}; `sessions` lists them.")
        return self._open(session_id)

    def _check_open(self) -> None:
        if self._is_closed:
            raise SessionClosed("The application was stopped; open the project again.")

    @property
    def sessions_folder(self) -> Path:
        """Folder the sessions are in."""
        return self._workspace / "sessions"

    def folder_of(self, session_id: str) -> Path:
        """Return the folder of a session, which may be a run of the tree search."""
        own = self.sessions_folder / session_id
        if self._runs is None or own.exists() or not NAME.fullmatch(session_id):
            return own
        run = self._runs / session_id
        return run.resolve() if layout_of(run) is RUN else own

    def connection_file(self, session_id: str, branch: str) -> Path:
        """Return the Jupyter connection file of a branch's kernel, which is there while it runs."""
        folder = self.folder_of(session_id)
        return connection_file(folder / layout_of(folder).kernels, _client_id(session_id, branch))

    def stop_session(self, session_id: str) -> None:
        """Stop a session and forget the session. An unknown id is ignored."""
        session = self.session_store.get_session(session_id)
        if session is not None:
            self.session_store.remove_session(session_id)
            session.stop()

    def close(self) -> None:
        """Stop every session, and hand out no more."""
        self._is_closed = True
        self.stop_all_sessions()
        if self._project_memory is not None:
            self._project_memory.close()

    def stop_all_sessions(self) -> None:
        """Stop every session. Further sessions may be opened."""
        for session_id in self.session_store.list_all_session_ids():
            self.stop_session(session_id)

    def _project(self) -> ProjectMemory:
        """Return the memory that the sessions share."""
        with self._sharing:
            if self._project_memory is None:
                path = self._workspace / MEMORY_FILE
                self._project_memory = ProjectMemory(path, self._memory_config(), self._embedder())
            return self._project_memory

    def _memory_config(self) -> MemoryConfig:
        return read_memory_config(self.injector.get(AppConfigSource))

    def _embedder(self) -> Embedder | None:
        model = embedding_model(self.injector.get(AppConfigSource))
        tell = self.injector.get(TelemetryLogger).warning
        return embedder(model, self.injector.get(LLMApi).get_embedding_list, tell)

    def _open(self, session_id: str, servers: Sequence[ServerConfig] = ()) -> Session:
        if not NAME.fullmatch(session_id):
            raise SessionError(f"{session_id!r} is not an id: letters, digits, - and _ only.")
        folder = self.folder_of(session_id)
        config, layout = self._memory_config(), layout_of(folder)
        files = SessionFiles(session_id, folder, config, layout, embedder=self._embedder())
        try:
            return self._build(files, servers)
        except BaseException:
            files.close()
            raise

    def _build(self, files: SessionFiles, servers: Sequence[ServerConfig]) -> Session:
        session_id, workspace = files.session_id, files.folder
        child, own = self.injector.create_child_injector(SessionModule()), None
        if servers and not child.get(ExecutionConfig).server:  # as of the project's
            own = child.get(MCPServers).with_others(servers)
            child.binder.bind(MCPServers, to=own)
        config, project = child.get(AppSessionConfig), self._project()

        def new_roles(name: str, memory: Memory, models: LLMApi, client: Client) -> dict[str, Role]:
            place = SessionMetadata(session_id, files.kernels, files.working_folder(name))
            module = branch_module(config, place, memory, models, client)
            return self._roles(child.create_child_injector(module), config.roles)

        kernels = child.get(Manager)  # type: ignore[type-abstract]  # the key of a binding

        def new_kernel(name: str, branch: str, state: Snapshot | None) -> Client:
            id_ = _client_id(session_id, name)
            places = files.kernels, files.working_folder(branch)
            if state is None:
                return kernels.get_session_client(id_, None, *places)
            return state.fork(id_, *places)

        parts = SessionParts(
            emitter=child.get(SessionEventEmitter),
            events=EventLog(workspace, child.get(TelemetryLogger)),
            llm_api=child.get(LLMApi),
            files=files,
            project=project,
            spending=Spending(child.get(LimitsConfig)),
            new_roles=new_roles,
            new_kernel=new_kernel,
            prepare_kernels=kernels.initialize,
        )
        place = SessionMetadata(session_id, workspace, files.working_folder(files.current))
        session = Session(place, config, parts, child.get(TelemetryLogger))
        self.session_store.set_session(session_id, session)
        parts.emitter.register(_Forgetting(self.session_store, session, own))
        if child.get(AppConfigSource).get_bool("llm.log_prompts"):
            session.prompts.write_to(workspace / PROMPTS_FILE)
        parts.emitter.register(RoundMarks(session, child.get(Tracing)))
        parts.emitter.emit_session(SessionEventType.session_start, session_id)
        return session

    def _roles(self, child: Injector, names: list[str]) -> dict[str, Role]:
        """Build the roles. The Planner leads, and without a Planner there can be only one role."""
        if _LEADER not in names and len(names) != 1:
            raise RoleError(
                ", ".join(names) or "(none)",
                "session.roles without `planner` must name exactly one role.",
            )
        registry = child.get(RoleRegistry)
        entries = [registry.get(name) for name in sorted(names, key=_LEADER.__ne__)]
        return {entry.alias: self._role(child, registry, entry) for entry in entries}

    def _role(self, child: Injector, registry: RoleRegistry, entry: RoleEntry) -> Role:
        found = registry.load_class(entry)
        if not issubclass(found, Role):
            raise RoleError(entry.name, f"{entry.module} is not a Role")
        try:
            own: dict[str, object] = {"role_entry": entry}
            nearest = next(c for c in found.__mro__ if {"config_type", "__init__"} & vars(c).keys())
            config_type = vars(nearest).get("config_type")
            if config_type is not None:  # else the constructor names it
                own["config"] = child.get(config_type)
            return child.create_object(found, own)
        except TaskWeaverError:
            raise
        except Exception as error:
            problem = f"{entry.module} cannot be made: {type(error).__name__}: {error}"
            raise RoleError(entry.name, problem) from error


def _client_id(session_id: str, branch: str) -> str:
    """Return the id of the kernel of a session's branch."""
    return f"{session_id}-{branch}"
