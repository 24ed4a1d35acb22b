"""The code interpreters that may run less: nothing but plugins, or nothing but the shell."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from taskweaver.code_interpreter.code_interpreter import CodeInterpreter, CodeInterpreterConfig
from taskweaver.code_interpreter.scope import PluginCalls, Scope, ShellScripts


class _NarrowConfig(CodeInterpreterConfig):
    """Configuration of a code interpreter whose scope has a prompt file."""

    scope_type: ClassVar[type[PluginCalls] | type[ShellScripts]]

    def _read_scope(self) -> Scope:
        file = self._get_path("prompt_file_path")
        return self.scope_type(Path(file) if file else None)


class PluginOrchestratorConfig(_NarrowConfig):
    """Keys under ``code_interpreter_plugin_only.``."""

    role = "code_interpreter_plugin_only"
    scope_type = PluginCalls


class PluginOrchestrator(CodeInterpreter):
    """Answers tasks by calling plugins; its code is calls of them and nothing else."""

    config_type = PluginOrchestratorConfig


class CLIAgentConfig(_NarrowConfig):
    """Keys under ``code_interpreter_cli_only.``."""

    role = "code_interpreter_cli_only"
    scope_type = ShellScripts


class CLIAgent(CodeInterpreter):
    """Answers tasks with shell commands, in the session's kernel and its sandbox."""

    config_type = CLIAgentConfig
