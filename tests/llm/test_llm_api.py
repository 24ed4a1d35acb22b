"""The facade: replies, usage, cancelling, and what it refuses to pass on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from fake_endpoint import DONE, Call, event, good, serving

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, ModelError, ModelServices
from taskweaver.llm.types import ChatMessage, Usage
from taskweaver.llm.usage import Prices

HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]


def api_of(function: Any, **config: Any) -> LLMApi:
    source = AppConfigSource(config={f"llm.{name}": value for name, value in config.items()})
    return LLMApi(ModelServices(source, function=function))


def api_at(url: str, **config: Any) -> LLMApi:
    settings = {"api_type": "openai", "api_base": url, "model": "m1", **config}
    return api_of(None, **settings)


def test_a_reply_is_one_message_or_its_pieces() -> None:
    api = api_of(lambda _: iter(["Hel", "", "lo"]))

    assert api.chat_completion(HELLO) == {"role": "assistant", "content": "Hello"}
    assert list(api.chat_completion_stream(HELLO)) == [
        {"role": "assistant", "content": "Hel"},
        {"role": "assistant", "content": "lo"},
    ]


def test_cached_tokens_have_a_price_of_their_own() -> None:
    usage = Usage(1_000, 100, cached_tokens=600)
    assert Prices(10.0, 0.0).apply(usage).cost == pytest.approx(0.01)
    assert Prices(10.0, 0.0, 1.0).apply(usage).cost == pytest.approx(0.0046)
    assert Prices(10.0, 0.0, 0.0).apply(replace(usage, cached_tokens=9_999)).cost == 0.0

    details = {"prompt_tokens_details": {"cached_tokens": 10}}
    told = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14, **details}
    body = [event("ab"), event(finish="stop", usage=told), DONE]
    with serving(lambda call: call.stream(body)) as endpoint:
        prices = {"prompt_price": 1e6, "completion_price": 0.0, "cached_prompt_price": 1e5}
        api = api_at(endpoint.url, **prices)
        api.chat_completion(HELLO)
        api._services.close()
    assert api.usage.cost == pytest.approx(2.0)


def test_usage_is_estimated_when_nobody_reports_it() -> None:
    api = api_of(lambda _: "x" * 360)

    api.chat_completion([{"role": "user", "content": "y" * 720}])

    usage = api.usage
    assert usage.is_estimated
    assert usage.calls == 1
    assert 150 <= usage.prompt_tokens <= 250
    assert 80 <= usage.completion_tokens <= 120
    assert usage.cost is None


def test_a_call_that_was_given_up_still_counts() -> None:
    api = api_of(lambda _: iter(["one", "two"]))
    with closing(api.chat_completion_stream(HELLO)) as pieces:  # type: ignore[type-var]
        next(pieces)

    assert api.usage.calls == 1


def test_calls_are_refused_from_an_interrupt_until_they_are_taken_again() -> None:
    api = api_of(lambda _: "fine")
    api.interrupt()

    with pytest.raises(ModelError, match="given up"):
        api.chat_completion(HELLO)
    api.resume()
    assert api.chat_completion(HELLO)["content"] == "fine"


def test_a_rate_limited_call_is_made_again_and_the_user_is_told() -> None:
    told: list[str] = []

    def play(call: Call) -> None:
        if call.number == 0:
            call.answer(429, {"error": {"message": "slow down"}}, Retry_After="0")
        elif call.number == 1:
            call.refuse(500, "oops")
        else:
            call.stream(good("ab"))

    with serving(play) as endpoint:
        api = api_at(endpoint.url)
        pieces = api.chat_completion_stream(HELLO, on_status=told.append)
        assert [piece["content"] for piece in pieces] == ["ab"]
        api._services.close()

    assert len(told) == 2
    assert told[0].startswith("rate limited")
    assert api.usage.calls == 1


@pytest.mark.parametrize(
    ("blocks", "kind"),
    [
        ([event("ab"), event(finish="length"), DONE], "truncated"),
        ([event("ab"), event(finish="content_filter"), DONE], "content_filter"),
        ([event(finish="stop"), DONE], "malformed"),
        ([event(" \n"), event(finish="stop"), DONE], "malformed"),
    ],
)
def test_free_text_that_is_not_whole_is_an_error(blocks: list[bytes], kind: str) -> None:
    with serving(lambda call: call.stream(blocks)) as endpoint:
        api = api_at(endpoint.url)
        with pytest.raises(ModelError) as caught:
            api.chat_completion(HELLO)
        api._services.close()

    assert caught.value.kind == kind
    assert api.usage.calls == 1


def test_a_summary_is_made_of_instructions_and_text() -> None:
    def model(messages: Sequence[ChatMessage]) -> str:
        assert [(m["role"], m["content"]) for m in messages] == [
            ("system", "how"),
            ("user", "what"),
        ]
        return "short"

    assert api_of(model).summarize("how", "what") == "short"


@pytest.mark.parametrize("reply", [None, 3, ["a"], iter([b"a"])])
def test_a_function_must_return_text(reply: Any) -> None:
    with pytest.raises(ModelError, match="not text"):
        api_of(lambda _: reply).chat_completion(HELLO)


def test_a_function_that_writes_piece_by_piece_is_given_up_between_pieces() -> None:
    def model(_: Sequence[ChatMessage]) -> Iterator[str]:
        yield "one"
        api.interrupt()
        yield "two"

    api = api_of(model)
    with pytest.raises(ModelError, match="given up"):
        api.chat_completion(HELLO)


# Embeddings


def test_texts_become_vectors_in_order() -> None:
    def play(call: Call) -> None:
        assert call.path == "/v1/embeddings"
        texts = call.body["input"]
        data = [{"index": at, "embedding": [float(len(text))]} for at, text in enumerate(texts)]
        call.answer(200, {"object": "list", "model": "e", "data": data[::-1]})

    with serving(play) as endpoint:
        api = api_at(endpoint.url, embedding_api_type="openai", embedding_model="e1")
        texts = ["x" * (at % 7 + 1) for at in range(600)]
        assert api.get_embedding_list(texts) == [[float(len(text))] for text in texts]
        assert api.get_embedding("abc") == [3.0]
        assert api.get_embedding("") == [1.0]
        assert api.get_embedding_list([]) == []
        api._services.close()
        assert [len(call.body["input"]) for call in endpoint.calls] == [256, 256, 88, 1, 1]
        assert endpoint.calls[0].body["model"] == "e1"


def test_embeddings_that_do_not_add_up_are_malformed() -> None:
    with serving(lambda call: call.answer(200, {"data": []})) as endpoint:
        api = api_at(endpoint.url, embedding_api_type="openai", embedding_model="e1")
        with pytest.raises(ModelError) as caught:
            api.get_embedding("a")
        api._services.close()
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("status", [401, 404])
def test_a_refused_embedding_is_a_model_error(status: int) -> None:
    with serving(lambda call: call.refuse(status, "no")) as endpoint:
        api = api_at(endpoint.url, embedding_api_type="openai", embedding_model="e1")
        with pytest.raises(ModelError):
            api.get_embedding("a")
        api._services.close()
        assert len(endpoint.calls) == 1


def test_without_an_embedding_model_the_error_says_what_to_set() -> None:
    with pytest.raises(ModelError, match=r"llm\.embedding_model"):
        api_of(lambda _: "x").get_embedding("a")
    with pytest.raises(ModelError, match=r"llm\.embedding_model"):
        api_of(lambda _: "x", embedding_api_type="openai").get_embedding("a")


def test_a_connection_the_server_closed_meanwhile_is_replaced() -> None:
    def play(call: Call) -> None:
        call.stream(good("ab"))
        call.hang_up()

    with serving(play) as endpoint, ModelServices(_source(endpoint.url)) as services:
        # Whether the closing is noticed before or after the next call is sent is up to chance.
        texts = [LLMApi(services).chat_completion(HELLO)["content"] for _ in range(5)]

    assert texts == ["ab"] * 5


def _source(url: str) -> AppConfigSource:
    facts = {"llm.api_type": "openai", "llm.api_base": url, "llm.model": "m1"}
    return AppConfigSource(config={**facts, "llm.max_retries": 3})


def test_the_servers_figures_and_the_price_are_added_up() -> None:
    with serving(lambda call: call.stream(good("ab"))) as endpoint:
        api = api_at(endpoint.url, prompt_price=1_000_000.0, completion_price=2_000_000.0)
        assert api.usage == Usage()
        for _ in range(2):
            api.chat_completion(HELLO)
        api._services.close()

    assert api.usage == Usage(22, 6, 34.0, 2)
