"""The code interpreters that may run less: nothing but plugins, or nothing but the shell."""

from __future__ import annotations

from pathlib import Path

from injector import inject

from taskweaver.ces.common import Client
from taskweaver.code_interpreter.code_generator import CodeGenerator
from taskweaver.code_interpreter.code_interpreter import CodeInterpreter, CodeInterpreterConfig
from taskweaver.code_interpreter.scope import PluginCalls, Scope, ShellScripts
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.servers import MCPServers
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.role.role import RoleEntry


class PluginOrchestratorConfig(CodeInterpreterConfig):
    """Keys under ``code_interpreter_plugin_only.``."""

    role = "code_interpreter_plugin_only"

    def _read_scope(self) -> Scope:
        file = self._get_path("prompt_file_path")
        return PluginCalls(Path(file) if file else None)


class PluginOrchestrator(CodeInterpreter):
    """Answers tasks by calling plugins; its code is calls of them and nothing else."""

    @inject
    def __init__(  # noqa: PLR0913 - as the CodeInterpreter
        self,
        config: PluginOrchestratorConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        generator: CodeGenerator,
        client: Client,
        plugin_registry: PluginRegistry,
        mcp_servers: MCPServers,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(
            config,
            logger,
            tracing,
            event_emitter,
            generator,
            client,
            plugin_registry,
            mcp_servers,
            role_entry,
        )


class CLIAgentConfig(CodeInterpreterConfig):
    """Keys under ``code_interpreter_cli_only.``."""

    role = "code_interpreter_cli_only"

    def _read_scope(self) -> Scope:
        file = self._get_path("prompt_file_path")
        return ShellScripts(Path(file) if file else None)


class CLIAgent(CodeInterpreter):
    """Answers tasks with shell commands, in the session's kernel and its sandbox."""

    @inject
    def __init__(  # noqa: PLR0913 - as the CodeInterpreter
        self,
        config: CLIAgentConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        generator: CodeGenerator,
        client: Client,
        plugin_registry: PluginRegistry,
        mcp_servers: MCPServers,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(
            config,
            logger,
            tracing,
            event_emitter,
            generator,
            client,
            plugin_registry,
            mcp_servers,
            role_entry,
        )
