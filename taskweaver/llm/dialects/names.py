"""Dialects by name."""

from __future__ import annotations

from typing import Literal

from taskweaver.llm.dialects.anthropic.dialect import AnthropicDialect
from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.dialect import Dialect
from taskweaver.llm.dialects.ollama.dialect import OllamaDialect
from taskweaver.llm.dialects.responses.dialect import ResponsesDialect

DialectName = Literal["anthropic", "chat", "ollama", "responses"]


def dialect_named(name: DialectName, model: str = "", *, has_cache_key: bool = False) -> Dialect:
    """Return a dialect.

    Args:
        name: Its name.
        model: Name of the model that is asked.
        has_cache_key: Whether the endpoint is given the key of its cache.
    """
    match name:
        case "chat":
            return ChatDialect(has_cache_key=has_cache_key)
        case "responses":
            return ResponsesDialect(model, has_cache_key)
        case "anthropic":
            return AnthropicDialect()
        case "ollama":
            return OllamaDialect()
