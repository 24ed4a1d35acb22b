"""Facts about one model at one endpoint: asked when they are needed, and once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from taskweaver.llm.facts.known_names import named_window
from taskweaver.llm.facts.learnt import LearntModel
from taskweaver.llm.facts.listed import listed_facts
from taskweaver.llm.facts.model_facts import ModelFacts
from taskweaver.llm.facts.ollama import chosen_window, ollama_facts
from taskweaver.llm.transport.endpoint import ConnectionPool, Endpoint

SHORT_PROMPT = 3_400
"""Tokens that fit into the smallest window with which servers load models: no question is due."""


class EndpointFacts:
    """Facts about one model: configured, asked, learnt or known by name; thread-safe.

    Attributes:
        pool: Connections to the endpoint, shared with the calls.
        learnt: Facts learnt of the model, which are kept.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        dialect: str = "chat",
        headers: Mapping[str, str] | None = None,
        configured_window: int = 0,
    ) -> None:
        """Ask nothing yet.

        Args:
            endpoint: The model.
            dialect: Name of its protocol.
            headers: Headers of its protocol beyond the client's own.
            configured_window: Tokens of its window; 0 where that is not configured.
        """
        self.pool = ConnectionPool(endpoint)
        self.learnt = LearntModel(endpoint)
        self._endpoint = endpoint
        self._headers = headers or {}
        self._configured = configured_window
        self._dialect = dialect
        self._is_ollama = dialect == "ollama"
        self._lock = threading.Lock()
        self._stated: ModelFacts | None = None
        self._chosen: int | None = None

    @property
    def takes_tools(self) -> bool | None:
        """Whether the model takes tools; None where that has to be tried."""
        is_asked = self._is_ollama or self._endpoint.is_loopback
        return self._ask().takes_tools if is_asked else None

    @property
    def takes_images(self) -> bool | None:
        """Whether the model takes images; None where that has to be tried."""
        return self._ask().takes_images if self._is_ollama else None

    def window(self, needed: Callable[[], int]) -> int:
        """Return the tokens of prompt and reply that fit; 0 where that is not known.

        Args:
            needed: Estimates the tokens of the prompt.
        """
        if self._configured:
            return self._configured
        if self._is_ollama:
            return self.loaded_window(needed)
        learnt = self.learnt.known.window
        if self._stated is None and needed() < SHORT_PROMPT:
            return learnt
        stated = self._ask().window
        if self._endpoint.is_loopback:
            return stated or learnt
        return min(filter(None, (stated, learnt)), default=named_window(self._endpoint.model))

    def loaded_window(self, needed: Callable[[], int]) -> int:
        """Return the window that Ollama is to load the model with, chosen at the first request.

        Args:
            needed: Estimates the tokens of the first prompt.

        Returns:
            The window; 0 to leave it to the server, and for all other servers.
        """
        if not self._is_ollama:
            return 0
        if self._configured:
            return self._configured
        stated = self._ask()
        with self._lock:
            if self._chosen is None:
                self._chosen = chosen_window(stated, needed())
            return self._chosen

    def close(self) -> None:
        """Close the connections."""
        self.pool.close()

    def _ask(self) -> ModelFacts:
        with self._lock:
            if self._stated is None:
                if self._is_ollama:
                    self._stated = ollama_facts(self.pool, self._endpoint.model)
                else:
                    self._stated = listed_facts(
                        self.pool, self._endpoint, self._dialect, self._headers
                    )
            return self._stated
