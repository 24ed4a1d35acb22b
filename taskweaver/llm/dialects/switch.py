"""Dialects by name, and the one in force at an endpoint that speaks more than one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from taskweaver.llm.dialects.anthropic import AnthropicDialect
from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.dialect import Dialect
from taskweaver.llm.dialects.ollama import OllamaDialect
from taskweaver.llm.dialects.responses import ResponsesDialect

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


class DialectSwitch:
    """The dialect in force at an endpoint. Thread-safe."""

    def __init__(
        self,
        first: Dialect,
        *,
        fallback: Dialect | None = None,
        for_reasoning: Dialect | None = None,
    ) -> None:
        """Begin with `first`.

        Args:
            first: The dialect to begin with.
            fallback: The dialect for an endpoint that does not know the first one's path.
            for_reasoning: The dialect for a model that reasons beside tools in no other.
        """
        self._lock = threading.Lock()
        self._current = first
        self._fallback = fallback
        self._for_reasoning = for_reasoning
        self._keep: Callable[[bool], None] = lambda _: None

    @property
    def current(self) -> Dialect:
        """The dialect in force."""
        return self._current

    def remember(self, keep: Callable[[bool], None], *, is_for_reasoning: bool) -> None:
        """Begin with the dialect that an earlier session found.

        Args:
            keep: Keeps whether the dialect for reasoning is in force, from now on.
            is_for_reasoning: Whether it was.
        """
        with self._lock:
            if is_for_reasoning:
                self._leave(self._current, self._for_reasoning, back_to=self._current)
            self._keep = keep

    def refuse_path(self, asked: Dialect) -> bool:
        """Leave a dialect whose path is unknown. Return whether another dialect is in force."""
        with self._lock:
            return self._leave(asked, self._fallback, back_to=None)

    def refuse_reasoning(self, asked: Dialect) -> bool:
        """Leave a dialect that takes tools without reasoning. Return whether another is in force.

        An endpoint that does not know the other's path gets this one again.
        """
        with self._lock:
            return self._leave(asked, self._for_reasoning, back_to=asked)

    def _leave(self, asked: Dialect, other: Dialect | None, back_to: Dialect | None) -> bool:
        if asked is not self._current:
            return True  # another call was faster
        if other is None:
            return False
        self._current, self._fallback, self._for_reasoning = other, back_to, None
        self._keep(back_to is not None)
        return True
