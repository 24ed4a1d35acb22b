"""The mock of the original answers, and no endpoint is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asking import models_at
from fake_endpoint import FakeEndpoint, good, serving

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, ModelError, ModelServices
from taskweaver.llm.types import ChatMessage

CHAT: list[ChatMessage] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "hello: you"},
]


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    """An endpoint that must not be asked."""
    with serving(lambda call: call.stream(good("paid for"))) as found:
        yield found
        assert found.calls == []


def api(endpoint: FakeEndpoint, **config: Any) -> LLMApi:
    mocked = {f"mock.{name}": value for name, value in config.items()}
    embedding = {"embedding_api_type": "openai", "embedding_model": "e"}
    return LLMApi(models_at(endpoint.url, use_mock=True, **embedding, **mocked))


def test_a_fixed_reply_and_vector_are_given_to_everything(endpoint: FakeEndpoint) -> None:
    asked = api(endpoint)
    assert asked.chat_completion(CHAT) == {"role": "assistant", "content": "Hello!"}
    assert asked.get_embedding_list(["x", "y"]) == [[0.0] * 64] * 2
    reply = json.dumps({"role": "assistant", "content": "Bye."})
    chosen = {"fixed_chat_responses": reply, "fixed_embedding_responses": "[[1, 2]]"}
    asked = api(endpoint, mode="fixed", **chosen)
    assert asked.chat_completion(CHAT)["content"] == "Bye."
    assert asked.get_embedding("x") == [1.0, 2.0]


def test_further_models_are_mocked_too(endpoint: FakeEndpoint) -> None:
    keys = {
        "llm.use_mock": True,
        "ext_llms.llm_configs": {
            "other": {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.api_key": "k-2"}
        },
    }
    with ModelServices(AppConfigSource(None, keys)) as services:
        asked = LLMApi(services)
        assert asked.chat_completion(CHAT, llm_alias="other")["content"] == "Hello!"
        assert services.announcement == "model: mock/fixed (llm.use_mock)"
        assert asked.completion_service.model == "mock/fixed"
        assert list(asked.ext_llms) == ["other"]
        assert asked.embedding_service is None


@pytest.mark.parametrize("reply", ["Hello!", "{}"])
def test_a_reply_that_cannot_be_read_is_named(endpoint: FakeEndpoint, reply: str) -> None:
    with pytest.raises(ModelError, match="fixed_chat_responses cannot") as failed:
        api(endpoint, fixed_chat_responses=reply).chat_completion(CHAT)
    assert failed.value.kind == "configuration"
