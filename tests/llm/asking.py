"""A question to models that are configured as a user configures them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage

HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]


def configured(**config: Any) -> AppConfigSource:
    """Return a configuration; the names stand below `llm.`, and None is not set."""
    given = {f"llm.{name}": value for name, value in config.items() if value is not None}
    return AppConfigSource(config=given)


def models_at(url: str, **config: Any) -> ModelServices:
    """Return the models of an application that asks an endpoint once for each call."""
    usual = {"api_type": "openai", "api_base": url, "model": "m1", "api_key": "k1"}
    return ModelServices(configured(**usual | {"max_retries": 0} | config))


@contextmanager
def api_at(url: str, **config: Any) -> Iterator[LLMApi]:
    """Open the models of an application at an endpoint."""
    with models_at(url, **config) as services:
        yield LLMApi(services)
