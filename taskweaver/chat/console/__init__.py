"""The chat at a terminal: ``python -m taskweaver.chat.console``."""

from taskweaver.chat.console.chat import chat_taskweaver

__all__ = ["chat_taskweaver"]
