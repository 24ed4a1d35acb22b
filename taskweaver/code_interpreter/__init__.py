"""The CodeInterpreter role."""

from taskweaver.code_interpreter.code_interpreter import CodeInterpreter, CodeInterpreterConfig

__all__ = ["CodeInterpreter", "CodeInterpreterConfig"]
