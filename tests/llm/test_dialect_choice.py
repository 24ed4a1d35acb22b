"""Which protocol an endpoint is asked in; the numbers are rows of the table of cases."""

from __future__ import annotations

from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from response_events import completed, created, message
from scripted_server import RUN

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.responses import ResponsesDialect
from taskweaver.llm.dialects.switch import DialectSwitch
from taskweaver.llm.errors import ModelError
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.services import ModelServices
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, ModelRequest

HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]
USUAL = {"llm.api_key": "k1", "llm.max_retries": 0}
WORDS = (
    "Function tools with reasoning_effort are not supported for gpt-5.6 in"
    " /v1/chat/completions. Please use /v1/responses instead."
)


def chosen(keys: dict[str, Any], alias: str = "") -> str:
    """Return the dialect that a configuration leads to; no endpoint is asked."""
    with ModelServices(AppConfigSource(None, USUAL | keys)) as services:
        service = services.get(alias)
        assert isinstance(service, EndpointService)
        return service.dialect.name


@pytest.mark.parametrize(
    ("model", "dialect"),
    [
        ("o1", "responses"),
        ("o3-mini", "responses"),
        ("o4-mini-2025-04-16", "responses"),
        ("gpt-5", "responses"),
        ("gpt-5-mini", "responses"),
        ("gpt-5.6", "responses"),
        ("gpt-5.1-codex", "responses"),
        ("gpt-6", "responses"),
        ("ft:o4-mini:mine", "responses"),
        ("gpt-5-chat-latest", "chat"),
        ("gpt-4.1-mini", "chat"),
        ("gpt-4o", "chat"),
        ("gpt-3.5-turbo", "chat"),
        ("gpt-oss-120b", "chat"),
    ],
)
def test_models_that_reason_are_asked_in_responses(model: str, dialect: str) -> None:
    assert chosen({"llm.api_type": "openai", "llm.model": model}) == dialect


def test_azure_is_asked_in_responses_where_that_is_configured() -> None:
    def play(call: Call) -> None:
        call.stream([created(), *message(0, "yes"), completed()])

    with serving(play) as endpoint:
        address = {"llm.api_type": "azure", "llm.api_base": endpoint.url, "llm.model": "mine"}
        assert chosen(address) == "chat"
        keys = USUAL | address | {"llm.dialect": "responses"}
        with ModelServices(AppConfigSource(None, keys)) as services:
            assert LLMApi(services).chat_completion(HELLO)["content"] == "yes"

    (call,) = endpoint.calls
    assert "/openai/responses?api-version=" in call.path
    assert call.body["model"] == "mine"


def in_words(body: dict[str, Any]) -> str:
    """Return the dialect and the effort of a request."""
    effort = body.get("reasoning_effort")
    return ("responses" if "input" in body else "chat") + (f" {effort}" if effort else "")


def asked(play: Any, keys: dict[str, Any] | None = None, times: int = 2) -> list[str]:
    """Ask for tools some times; return the dialects and efforts of the requests."""
    with serving(play) as endpoint:
        address = {"llm.model": "gpt-5.6", "llm.api_base": endpoint.url, "llm.form": "tools"}
        with ModelServices(AppConfigSource(None, USUAL | address | (keys or {}))) as services:
            api = LLMApi(services)
            for _ in range(times):
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
    with serving(play) as endpoint:
        service = EndpointService(Endpoint(endpoint.url, "m1"), dialects=dialects)
        with pytest.raises(ModelError, match="does not exist"):
            list(service.stream(ModelRequest(HELLO)))
        service.close()

    assert len(endpoint.calls) == 1


# The key of a cache


def test_other_endpoints_get_no_cache_key() -> None:
    with serving(strict_gateway) as endpoint:
        keys = USUAL | {"llm.model": "m1", "llm.api_base": endpoint.url, "llm.dialect": "responses"}
        with ModelServices(AppConfigSource(None, keys)) as services:
            LLMApi(services).chat_completion(HELLO)

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
