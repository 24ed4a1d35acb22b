"""Which protocol an endpoint is asked in; the numbers are rows of the table of cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import claude_replies
import pytest
from asking import HELLO, api_at, models_at
from fake_endpoint import Call, good, serving
from response_events import completed, created, message
from scripted_server import RUN, outcome

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.responses import ResponsesDialect
from taskweaver.llm.dialects.switch import DialectSwitch
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ModelRequest

CLAUDE_KEY = "sk-ant-the-users-own-key-0123456789"
WORDS = (
    "Function tools with reasoning_effort are not supported for gpt-5.6 in"
    " /v1/chat/completions. Please use /v1/responses instead."
)


def chosen(keys: dict[str, Any], alias: str = "") -> str:
    """Return the dialect that a configuration leads to; no endpoint is asked."""
    with ModelServices(AppConfigSource(None, {"llm.api_key": "k1", **keys})) as services:
        service = services.get(alias)
        assert isinstance(service, EndpointService)
        return service.dialect.name


MODELS = {
    "responses": "o1 o3-mini o4-mini-2025-04-16 gpt-5 gpt-5-mini gpt-5.6 gpt-5.1-codex gpt-6"
                 " ft:o4-mini:mine",
    "chat": "gpt-5-chat-latest gpt-4.1-mini gpt-4o gpt-3.5-turbo gpt-oss-120b",
}  # fmt: skip


@pytest.mark.parametrize("dialect", MODELS)
def test_models_that_reason_are_asked_in_responses(dialect: str) -> None:
    for model in MODELS[dialect].split():
        assert chosen({"llm.api_type": "openai", "llm.model": model}) == dialect, model


def test_azure_is_asked_in_responses_where_that_is_configured() -> None:
    def play(call: Call) -> None:
        call.stream([created(), *message(0, "yes"), completed()])

    azure = {"api_type": "azure", "model": "mine"}
    with serving(play) as endpoint, api_at(endpoint.url, **azure, dialect="responses") as api:
        assert api.chat_completion(HELLO)["content"] == "yes"
    with models_at(endpoint.url, **azure) as services:
        assert services.get().dialect.name == "chat"  # type: ignore[attr-defined]
    (call,) = endpoint.calls
    assert "/openai/responses?api-version=" in call.path
    assert call.body["model"] == "mine"


def in_words(body: dict[str, Any]) -> str:
    """Return the dialect and the effort of a request."""
    effort = body.get("reasoning_effort")
    return ("responses" if "input" in body else "chat") + (f" {effort}" if effort else "")


def asked(play: Callable[[Call], None]) -> list[str]:
    """Ask for tools twice; return the dialects and efforts of the requests."""
    with serving(play) as endpoint:
        with api_at(endpoint.url, api_type=None, model="gpt-5.6", form="tools") as api:
            for _ in range(2):
                assert "".join(item.text for item in api.stream_chunks(HELLO, tools=[RUN])) == "x"
        return [in_words(call.body) for call in endpoint.calls]


def strict_gateway(call: Call) -> None:
    """Answer like an endpoint that takes tools with reasoning in Responses alone."""
    if "input" in call.body:
        call.stream([created(), *message(0, "x"), completed()])
    elif call.body.get("reasoning_effort") != "none":
        call.refuse(400, WORDS)
    else:
        call.stream(good("x"))


def test_34_a_model_that_reasons_beside_tools_is_asked_in_responses_from_then_on() -> None:
    assert asked(strict_gateway) == ["chat", "responses", "responses"]


@pytest.mark.parametrize("status", [404, 405])
def test_34_without_responses_it_is_asked_without_reasoning(status: int) -> None:
    def play(call: Call) -> None:
        if "input" in call.body:
            call.answer(status, {"detail": "Not Found"})
        else:
            strict_gateway(call)

    assert asked(play) == ["chat", "responses", "chat", "chat none", "chat none"]


def test_a_missing_model_is_no_missing_path() -> None:
    def play(call: Call) -> None:
        call.refuse(404, "The model `m1` does not exist.", code="model_not_found")

    dialects = DialectSwitch(ResponsesDialect(), fallback=ChatDialect())
    seen = outcome(play, dialects=dialects)
    assert "does not exist" in str(seen.error)
    assert len(seen.bodies) == 1


def test_other_endpoints_get_no_cache_key() -> None:
    keys = {"api_type": None, "dialect": "responses"}
    with serving(strict_gateway) as endpoint, api_at(endpoint.url, **keys) as api:
        api.chat_completion(HELLO)
    assert "prompt_cache_key" not in endpoint.calls[0].body


def test_a_session_keeps_its_cache_key_and_shares_it_with_no_other() -> None:
    requests: list[ModelRequest] = []

    def model(_messages: Any, request: ModelRequest) -> str:
        requests.append(request)
        return "yes"

    with ModelServices(AppConfigSource(None, {}), function=model) as services:
        for api in (LLMApi(services), LLMApi(services)):
            api.chat_completion(HELLO)
            api.chat_completion(HELLO)
    keys = [request.cache_key for request in requests]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert all(keys)


def test_the_configured_dialect_is_spoken() -> None:
    own = {"ext_llms.llm_configs": {"other": {"llm.dialect": "responses"}}}
    keys = {"llm.api_type": "openai", "llm.model": "gpt-5", "llm.dialect": "chat"}
    assert chosen(keys) == "chat"
    assert chosen(keys | own, "other") == "responses"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_own_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", CLAUDE_KEY)

    def answer(call: Call) -> None:
        if call.path.endswith("/models"):
            call.answer(200, {"data": [{"type": "model", "id": "claude-one"}]})
        else:
            call.stream(claude_replies.reply(claude_replies.text("yes")))

    with serving(answer) as endpoint:
        keys = {"llm.api_type": "anthropic", "llm.max_retries": 0}
        keys["llm.api_base"] = endpoint.url.removesuffix("/v1") + ending
        with ModelServices(AppConfigSource(config=keys)) as models:
            assert LLMApi(models).chat_completion(HELLO)["content"] == "yes"
    listed, asked = endpoint.calls
    assert (listed.path, asked.path) == ("/v1/models", "/v1/messages")
    assert asked.body["model"] == "claude-one"
    for call in endpoint.calls:
        assert call.headers["x-api-key"] == CLAUDE_KEY
        assert "authorization" not in call.headers
