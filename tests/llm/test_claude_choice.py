"""Which address, key and protocol `llm.api_type` anthropic takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claude_replies import reply, text
from fake_endpoint import Call, serving

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage

KEY = "sk-ant-the-users-own-key-0123456789"
HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]
MODELS = {"data": [{"type": "model", "id": "claude-one"}]}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def services(**config: Any) -> ModelServices:
    keys = {"llm.api_type": "anthropic", "llm.max_retries": 0}
    return ModelServices(AppConfigSource(config=keys | config))


def answer(call: Call) -> None:
    if call.path.endswith("/models"):
        call.answer(200, MODELS)
    else:
        call.stream(reply(text("yes")))


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_an_own_address_gets_the_protocol_with_or_without_its_version(ending: str) -> None:
    with serving(answer) as endpoint:
        base = endpoint.url.removesuffix("/v1") + ending
        with services(**{"llm.api_base": base}) as models:
            assert LLMApi(models).chat_completion(HELLO)["content"] == "yes"
    listed, asked = endpoint.calls
    assert (listed.path, asked.path) == ("/v1/models", "/v1/messages")
    assert asked.body["model"] == "claude-one"
    for call in endpoint.calls:
        assert call.headers["x-api-key"] == KEY
        assert "authorization" not in call.headers
