"""The CodeInterpreter role, and two roles that may run less."""

from taskweaver.code_interpreter.code_interpreter import (
    CLIAgent,
    CodeInterpreter,
    CodeInterpreterConfig,
    PluginOrchestrator,
)
from taskweaver.code_interpreter.interpreter import Interpreter

CodeInterpreterPluginOnly = PluginOrchestrator
CodeInterpreterCLIOnly = CLIAgent

__all__ = [
    "CodeInterpreter",
    "CodeInterpreterCLIOnly",
    "CodeInterpreterConfig",
    "CodeInterpreterPluginOnly",
    "Interpreter",
]
