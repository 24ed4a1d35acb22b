"""Windows and abilities that servers state, and those that are chosen, learnt or known by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asking import models_at
from fake_endpoint import Call, good, serving
from ollama_server import MODEL, ollama, said

from taskweaver.llm.api import LLMApi
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.services import ModelServices
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.transport.exchange import Deadlines
from taskweaver.llm.types import ChatMessage, ModelRequest

LONG: list[ChatMessage] = [{"role": "user", "content": "word " * 3_000}]
SHORT: list[ChatMessage] = [{"role": "user", "content": "count to 3"}]


def services(base: str, api_type: str = "ollama", **config: Any) -> ModelServices:
    return models_at(base, **{"api_type": api_type, "model": MODEL, "api_key": None} | config)


def grown(words: int) -> list[ChatMessage]:
    return [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "word " * words},
        {"role": "user", "content": "two"},
    ]


def answered(call: Call) -> None:
    call.stream(said("1 2 3"))


def test_row_82_its_window_is_chosen_once_and_holds_the_prompt() -> None:
    with ollama(answered) as (endpoint, server), services(endpoint.url) as models:
        api = LLMApi(models)
        for messages in (LONG, SHORT, LONG * 3):
            api.chat_completion(messages)
        assert models.model().window_for(ModelRequest(SHORT)) == 16_384
    assert [options["num_ctx"] for options in server.options] == [16_384] * 3
    assert [call.path for call in server.questions] == ["/api/show", "/api/ps"]
    assert server.questions[0].body == {"model": MODEL}


@pytest.mark.parametrize(
    ("facts", "words", "window"),
    [
        ({"trained": 8_192}, 3_000, 8_192), ({"loaded": 32_768}, 3_000, 32_768),
        ({"loaded": 4_096}, 10, 16_384), ({"loaded": 8_192}, 10, 8_192),
        ({"trained": 2_048, "loaded": 2_048}, 10, 2_048),
        ({"parameters": "stop x\nnum_ctx     12000\n"}, 3_000, 12_000),
        ({"parameters": "num_ctx 4096"}, 3_000, 16_384),
        ({"parameters": "num_ctx 99999999"}, 3_000, 40_960), ({"trained": 262_144}, 20_000, 65_536),
    ],
)  # fmt: skip
def test_the_window_that_is_asked_for(facts: dict[str, Any], words: int, window: int) -> None:
    with ollama(answered, **facts) as (endpoint, server), services(endpoint.url) as models:
        LLMApi(models).chat_completion([{"role": "user", "content": "word " * words}])
    assert server.options[0]["num_ctx"] == window


def test_a_configured_window_is_sent_as_it_is_and_nothing_is_asked() -> None:
    with (
        ollama(answered) as (endpoint, server),
        services(endpoint.url, context_window=5_000, form="tools") as models,
    ):
        LLMApi(models).chat_completion(SHORT)
        assert models.model().window_for(ModelRequest(LONG)) == 5_000
    assert server.options == [{"num_ctx": 5_000}]
    assert not server.questions


@pytest.mark.parametrize(
    ("model", "capabilities", "form"),
    [
        ("qwen3:8b", ["completion", "tools"], "tools"),
        ("unheard-of:3b", ["completion", "tools"], "tools"),
        ("unheard-of:3b", None, "fences"),
        ("unheard-of", None, "tools"),
        ("qwen3:8b", ["completion"], "fences"),
        ("qwen2.5-coder:7b", ["completion", "tools"], "fences"),
    ],
)
def test_row_83_the_form_by_ability(model: str, capabilities: list[str] | None, form: str) -> None:
    with (
        ollama(answered, capabilities=capabilities) as (endpoint, server),
        services(endpoint.url, model=model) as models,
    ):
        assert LLMApi(models).form() == form
        assert not server.chats


def listing(**entry: Any) -> dict[str, Any]:
    return {"data": [{"id": "another", "max_model_len": 1}, {"id": MODEL, **entry}]}


STUDIO = {"/v1/models": listing(owned_by="organization_owner")}
LISTS: dict[str, tuple[dict[str, Any], int]] = {
    "vllm": ({"/v1/models": listing(max_model_len=8_192)}, 8_192),
    "groq": ({"/v1/models": listing(context_window=131_072)}, 131_072),
    "openrouter": ({"/v1/models": listing(context_length=9_000,
                                          top_provider={"context_length": 7_000})}, 7_000),
    "mistral": ({"/v1/models": listing(max_context_length=32_768)}, 32_768),
    "llama.cpp": ({"/v1/models": {"data": [{"id": "/a.gguf", "owned_by": "llamacpp"}]},
                   "/props": {"default_generation_settings": {"n_ctx": 4_096}}}, 4_096),
    "lm studio": ({**STUDIO, "/api/v0/models": listing(loaded_context_length=6_000,
                                                       max_context_length=99_000)}, 6_000),
    "lm studio, not loaded": ({**STUDIO, "/api/v0/models": listing(max_context_length=99_000)}, 0),
    "ollama": ({"/v1/models": listing(owned_by="library"),
                "/api/show": {"model_info": {"a.context_length": 40_960}},
                "/api/ps": {"models": [{"name": MODEL, "context_length": 4_096}]}}, 4_096),
    "unknown": ({"/v1/models": listing(owned_by="me")}, 0),
}  # fmt: skip


def stating(facts: dict[str, Any]) -> Callable[[Call], None]:
    def answer(call: Call) -> None:
        if call.path in facts:
            call.answer(200, facts[call.path])
        elif call.path.endswith("/chat/completions"):
            call.stream(good("yes"))
        else:
            call.answer(404, {"error": "no such path"})

    return answer


@pytest.mark.parametrize(("facts", "window"), LISTS.values(), ids=LISTS)
def test_a_server_is_asked_once_for_long_prompts_alone(facts: dict[str, Any], window: int) -> None:
    with (
        serving(stating(facts), states_facts=True) as endpoint,
        services(endpoint.url, "openai", api_key="k") as models,
    ):
        api = LLMApi(models)
        api.chat_completion(SHORT)
        assert len(endpoint.calls) == 1
        assert [models.model().window_for(ModelRequest(LONG)) for _ in range(2)] == [window] * 2
        asked = [call.path for call in endpoint.calls[1:]]
        assert sorted(asked) == sorted(facts)


def test_what_is_sent_stays_below_the_window_that_the_server_states() -> None:
    facts = {"/v1/models": listing(max_model_len=6_000)}
    with (
        serving(stating(facts), states_facts=True) as endpoint,
        services(endpoint.url, "vllm") as models,
    ):
        LLMApi(models).chat_completion(grown(20_000))
        sent = endpoint.calls[-1].body["messages"]
    assert sent[-1]["content"] == "two"
    assert len(json.dumps(sent)) < 6_000 * 5


def big(call: Call) -> None:
    call.start("application/json")
    try:
        for _ in range(80):
            call.send(b"[" * (1 << 17))
        call.end()
    except OSError:
        call.hang_up()


@pytest.mark.parametrize(
    "broken",
    [
        Call.hang_up, Call.stall, big, lambda call: call.answer(500, {"error": "down"}),
        lambda call: call.answer(302, {}, Location="http://127.0.0.1:1/v1/models"),
        lambda call: call.answer(200, "<html>"), lambda call: call.answer(200, [1]),
        lambda call: call.answer(200, {"data": [{"id": MODEL, "max_model_len": -5}]}),
        lambda call: call.answer(200, {"data": [{"id": MODEL, "max_model_len": [1]}]}),
        lambda call: call.answer(200, {"capabilities": "tools", "model_info": 3}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["anthropic", "chat", "ollama"])
def test_a_question_without_an_answer_is_no_error(
    broken: Callable[[Call], None], dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskweaver.llm.facts._LIMITS", Deadlines(1.0, 1.0, 1.0, 1.0))
    with serving(broken, states_facts=True) as endpoint:
        facts = EndpointFacts(Endpoint(endpoint.url, MODEL), dialect=dialect)
        assert facts.window(lambda: 9_000) == 0
        facts.close()


def asked_at(base: str, monkeypatch: pytest.MonkeyPatch, **more: str) -> list[str]:
    """Return the questions that an endpoint would get."""
    asked: list[str] = []
    monkeypatch.setattr(
        "taskweaver.llm.facts.answer_of", lambda _pool, path, *_, **__: asked.append(path)
    )
    facts = EndpointFacts(Endpoint(base, "gpt-4o", "k", **more))
    facts.window(lambda: 9_000)
    facts.close()
    return asked


def test_providers_are_asked_for_their_lists_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for base in (
        "https://api.openai.com/v1", "https://eu.api.openai.com/v1", "https://api.deepseek.com/v1",
        "https://generativelanguage.googleapis.com/v1beta/openai", "https://x.openai.azure.com",
        "https://dashscope.aliyuncs.com/compatible-mode/v1", "https://open.bigmodel.cn/api/paas/v4",
    ):  # fmt: skip
        assert asked_at(base, monkeypatch) == [], base
    assert asked_at("https://proxy.example", monkeypatch, api_version="2024-10-21") == []
    assert asked_at("https://api.groq.com/openai/v1", monkeypatch) == ["/models"]
    assert asked_at("https://gateway.example/v1", monkeypatch) == ["/models"]


def test_row_84_an_overflow_of_ollama_is_shortened_and_asked_again() -> None:
    words = "the prompt is longer than the context length currently available to the model"

    def answer(call: Call) -> None:
        if len(json.dumps(call.body["messages"])) > 9_000:
            call.answer(400, {"error": words})
        else:
            call.stream(said("yes"))

    with ollama(answer) as (endpoint, server), services(endpoint.url) as models:
        assert LLMApi(models).chat_completion(grown(4_000))["content"] == "yes"
    assert {options["num_ctx"] for options in server.options} == {16_384}
    assert all(call.body["truncate"] is False for call in server.chats)
