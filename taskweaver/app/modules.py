"""Injector modules of an application, a session and a branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from injector import Binder, InstanceProvider, Module, provider, singleton

from taskweaver.ces.common import Client, Manager
from taskweaver.ces.kernel_server import require_address
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.remote_kernels import RemoteManager
from taskweaver.ces.sandbox.hosts import AllowedHosts
from taskweaver.ces.sandbox.sandbox import SandboxChoice, SandboxRequest
from taskweaver.code_interpreter.prompt import KernelFacts, local_kernel_facts
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.module_config import ModuleConfig
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.config import MCPConfig
from taskweaver.mcp.servers import MCPServers
from taskweaver.memory.memory import Memory
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.registry.registry import RoleRegistry
from taskweaver.role.workplace import Workplace
from taskweaver.session.branches.parts import SessionMetadata
from taskweaver.session.config import AppSessionConfig

ModelFunction = Callable[[Sequence[ChatMessage]], str | Iterator[str]]

PACKAGE = Path(__file__).parent.parent
ROLE_FOLDERS = (PACKAGE / "planner", PACKAGE / "code_interpreter", PACKAGE / "ext_role")


class FoldersConfig(ModuleConfig):
    """Folders of an application."""

    def _configure(self) -> None:
        self.workspace = Path(self._get_path("workspace.workspace_path"))
        self.runs = Path(self._get_path("search.folder"))
        self.plugins = Path(self._get_path("plugin.base_path"))
        self.roles = Path(self._get_path("role.base_path"))
        self.env_dir = Path(self._get_path("execution_service.env_dir"))


class ExecutionConfig(ModuleConfig):
    """Keys under ``execution.``."""

    def _configure(self) -> None:
        self._set_name("execution")
        self.is_warm = self._get_bool("zygote")
        self.sandbox = self._get_enum("sandbox")
        self.has_network = self._get_bool("network")
        self.allowed_hosts = tuple(self._get_list("allowed_hosts"))
        AllowedHosts(self.allowed_hosts)  # a mistake in it is told now, not by the first kernel
        self.read_only = [Path(path) for path in self._get_list("read_only_paths")]
        self.writable = [Path(path) for path in self._get_list("writable_paths")]
        self.server = self._get_str("server")
        if self.server:
            require_address(self.server)  # told now, too
        self.server_token = self._get_str("server_token")
        self.limits = KernelLimits.from_source(self.src)

    def kernels(self, folder: Path, policy: SandboxPolicy | None) -> Manager:
        """Return an owner of kernels: on `execution.server`, or on this machine."""
        if self.server:
            return RemoteManager(self.server, self.server_token, folder)
        return code_execution_service_factory(
            folder, limits=self.limits, is_warm=self.is_warm, sandbox=policy
        )


class AppModule(Module):
    """Objects that all sessions of an application share."""

    def __init__(
        self,
        src: AppConfigSource,
        logger: TelemetryLogger,
        tracing: Tracing,
        function: ModelFunction | None,
        kernels: Manager | None = None,
    ) -> None:
        self._parts: Sequence[object] = (src, logger, tracing)
        self._function = function
        self._kernels = kernels

    def configure(self, binder: Binder) -> None:
        """Bind the configuration, the log and the traces."""
        for part in self._parts:
            binder.bind(type(part), to=part)

    @singleton
    @provider
    def models(
        self, src: AppConfigSource, tracing: Tracing, logger: TelemetryLogger
    ) -> ModelServices:
        """The models."""
        return ModelServices(
            src, function=self._function, tracing=tracing, on_new_host=logger.warning
        )

    @singleton
    @provider
    def llm_api(self, models: ModelServices) -> LLMApi:
        """The way to the models of a program without a session.

        Each session has a way of its own.
        """
        return LLMApi(models)

    @singleton
    @provider
    def sandbox_request(self, folders: FoldersConfig, execution: ExecutionConfig) -> SandboxRequest:
        """The sandbox that the configuration asks for."""
        readable = (folders.plugins, *execution.read_only)
        policy = SandboxPolicy(
            execution.has_network, readable, tuple(execution.writable), execution.allowed_hosts
        )
        return SandboxRequest(execution.sandbox, policy)

    @singleton
    @provider
    def sandbox(self, request: SandboxRequest) -> SandboxChoice:
        """The sandbox for kernels, if there is a sandbox."""
        return request.choose()

    @singleton
    @provider
    def kernels(
        self, folders: FoldersConfig, execution: ExecutionConfig, choice: SandboxChoice
    ) -> Manager:
        """The owner of all kernels."""
        if self._kernels is not None:
            return self._kernels
        return execution.kernels(folders.env_dir, choice.policy)

    @singleton
    @provider
    def kernel_facts(self, execution: ExecutionConfig, choice: SandboxChoice) -> KernelFacts:
        """The facts on the kernel that prompts state."""
        is_elsewhere = bool(execution.server) or self._kernels is not None
        return KernelFacts() if is_elsewhere else local_kernel_facts(choice.policy)

    @singleton
    @provider
    def mcp_servers(
        self,
        config: MCPConfig,
        execution: ExecutionConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
    ) -> MCPServers:
        """The MCP servers of the project, or no servers where code runs on another machine."""
        folder = logger.path.parent if logger.path else None
        return MCPServers(() if execution.server else config.servers, folder, tracing)

    @singleton
    @provider
    def roles(self, folders: FoldersConfig) -> RoleRegistry:
        """The packaged roles and the roles of the project."""
        return RoleRegistry([*ROLE_FOLDERS, folders.roles])


class SessionModule(Module):
    """Objects that all branches of a session share."""

    @singleton
    @provider
    def emitter(self, logger: TelemetryLogger) -> SessionEventEmitter:
        """The receiver of events."""
        return SessionEventEmitter(logger)

    @singleton
    @provider
    def llm_api(self, models: ModelServices) -> LLMApi:
        """The session's way to the models."""
        return LLMApi(models)


def branch_module(
    config: AppSessionConfig,
    place: SessionMetadata,
    memory: Memory,
    models: LLMApi,
    client: Client,
) -> Callable[[Binder], None]:
    """Return the bindings of the objects that the roles of one branch share."""
    folder = config.data_dir
    pictures = folder / "data" if config.has_tables_only else folder
    workplace = Workplace(place.execution_cwd, pictures.resolve())

    def bind(binder: Binder) -> None:
        binder.bind(SessionMetadata, to=place)
        binder.bind(Workplace, to=workplace)
        binder.bind(Memory, to=memory)
        binder.bind(LLMApi, to=models)
        binder.bind(Client, to=InstanceProvider(client))  # type: ignore[type-abstract]  # a key

    return bind
