"""The mock of the original answers, and no endpoint is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
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


def key(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def mock_file(folder: Path) -> Path:
    """Write a file as the original does."""
    file = folder / "mock.yaml"
    times = {"created_at": 1.0, "last_accessed_at": 2.0}
    asked = "system:Be kind.\nuser:hello: you"
    reply = {"value": "assistant:Good: day.", "query": asked, **times}
    vector = {"value": "0.5,1.0", "query": "a text", **times}
    stores = {
        "completion_store": {key(asked): reply},
        "embedding_store": {key("a text"): vector},
    }
    file.write_text(yaml.safe_dump(stores))
    return file


def api(endpoint: FakeEndpoint, **config: Any) -> LLMApi:
    keys: dict[str, Any] = {
        "llm.use_mock": True,
        "llm.api_type": "openai",
        "llm.api_base": endpoint.url,
        "llm.api_key": "k-1",
        "llm.model": "m",
        "llm.embedding_api_type": "openai",
        "llm.embedding_model": "e",
    }
    keys |= {f"llm.mock.{name}": value for name, value in config.items()}
    return LLMApi(ModelServices(AppConfigSource(None, keys)))


def test_a_fixed_reply_and_vector_are_given_to_everything(endpoint: FakeEndpoint) -> None:
    asked = api(endpoint, mode="fixed")
    assert asked.chat_completion(CHAT) == {"role": "assistant", "content": "Hello!"}
    assert asked.get_embedding_list(["x", "y"]) == [[0.0] * 64] * 2
    reply = json.dumps({"role": "assistant", "content": "Bye."})
    asked = api(
        endpoint, mode="fixed", fixed_chat_responses=reply, fixed_embedding_responses="[[1, 2]]"
    )
    assert asked.chat_completion(CHAT)["content"] == "Bye."
    assert asked.get_embedding("x") == [1.0, 2.0]


@pytest.mark.parametrize("mode", ["playback_only", "playback_or_record", None])
def test_a_recorded_reply_is_played_back_and_a_missing_one_is_an_error(
    endpoint: FakeEndpoint, tmp_path: Path, mode: str | None
) -> None:
    chosen = {"mode": mode} if mode else {}
    asked = api(endpoint, cache_path=str(mock_file(tmp_path)), **chosen)
    assert asked.chat_completion(CHAT)["content"] == "Good: day."
    assert asked.get_embedding("a text") == [0.5, 1.0]
    with pytest.raises(ModelError, match="no endpoint is asked") as missed:
        asked.chat_completion(CHAT[1:])
    assert missed.value.kind == "recording_miss"
    with pytest.raises(ModelError, match="holds no vector"):
        asked.get_embedding("another text")


def test_further_models_are_mocked_too(endpoint: FakeEndpoint) -> None:
    keys = {
        "llm.use_mock": True,
        "llm.mock.mode": "fixed",
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


@pytest.mark.parametrize(
    ("content", "config", "problem"),
    [
        ("- 1", {}, "is not a mock file of the original"),
        ("{", {}, "is not a mock file of the original"),
        ("", {"mode": "fixed", "fixed_chat_responses": "Hello!"}, "fixed_chat_responses cannot"),
        ("", {"mode": "fixed", "fixed_chat_responses": "{}"}, "fixed_chat_responses cannot"),
    ],
)
def test_what_cannot_be_read_is_named(
    endpoint: FakeEndpoint, tmp_path: Path, content: str, config: dict[str, str], problem: str
) -> None:
    file = tmp_path / "mock.yaml"
    file.write_text(content)
    with pytest.raises(ModelError, match=problem) as failed:
        api(endpoint, cache_path=str(file), **config).chat_completion(CHAT)
    assert failed.value.kind == "configuration"
