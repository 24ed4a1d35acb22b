"""Dialects by name."""

from __future__ import annotations

from typing import Literal

from taskweaver.llm.dialects.anthropic.dialect import AnthropicDialect
from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.dialect import Dialect
from taskweaver.llm.dialects.ollama.dialect import OllamaDialect

DialectName = Literal["anthropic", "chat", "ollama"]


def dialect_named(name: DialectName) -> Dialect:
    """Return a dialect."""
    match name:
        case "chat":
            return ChatDialect()
        case "anthropic":
            return AnthropicDialect()
        case "ollama":
            return OllamaDialect()
