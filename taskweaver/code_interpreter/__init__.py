"""The CodeInterpreter role, and those that may run less."""

from taskweaver.code_interpreter.code_interpreter import CodeInterpreter, CodeInterpreterConfig
from taskweaver.code_interpreter.interpreter import Interpreter
from taskweaver.code_interpreter.variants import CLIAgent, PluginOrchestrator

CodeInterpreterPluginOnly = PluginOrchestrator
CodeInterpreterCLIOnly = CLIAgent

__all__ = [
    "CodeInterpreter",
    "CodeInterpreterCLIOnly",
    "CodeInterpreterConfig",
    "CodeInterpreterPluginOnly",
    "Interpreter",
]
