"""The facade: replies, usage, cancelling, and what it refuses to pass on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from asking import HELLO, api_at, configured
from fake_endpoint import DONE, Call, event, good, serving

from taskweaver.llm import LLMApi, ModelError, ModelServices
from taskweaver.llm.types import ChatMessage, Usage
from taskweaver.llm.usage import Prices, TokenEstimator

EMBEDDING = {"embedding_api_type": "openai", "embedding_model": "e1"}


def api_of(function: Any, **config: Any) -> LLMApi:
    return LLMApi(ModelServices(configured(**config), function=function))


@contextmanager
def replying(blocks: list[bytes], **config: Any) -> Iterator[LLMApi]:
    with (
        serving(lambda call: call.stream(blocks)) as endpoint,
        api_at(endpoint.url, **config) as api,
    ):
        yield api


def user(content: Any) -> list[ChatMessage]:
    return [{"role": "user", "content": content}]


def test_a_reply_is_one_message_or_its_pieces() -> None:
    api = api_of(lambda _: iter(["Hel", "", "lo"]))
    assert api.chat_completion(HELLO) == {"role": "assistant", "content": "Hello"}
    assert list(api.chat_completion_stream(HELLO)) == [
        {"role": "assistant", "content": "Hel"},
        {"role": "assistant", "content": "lo"},
    ]


def test_figures_of_the_server_and_prices_are_added_up() -> None:
    usage = Usage(1_000, 100, cached_tokens=600)
    assert Prices(10.0, 0.0).apply(usage).cost == pytest.approx(0.01)
    assert Prices(10.0, 0.0, 1.0).apply(usage).cost == pytest.approx(0.0046)
    assert Prices(10.0, 0.0, 0.0).apply(replace(usage, cached_tokens=9_999)).cost == 0.0
    with replying(good("ab"), prompt_price=1e6, completion_price=2e6) as api:
        assert api.usage == Usage()
        for _ in range(2):
            api.chat_completion(HELLO)
    assert api.usage == Usage(22, 6, 34.0, 2)
    told = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    told |= {"prompt_tokens_details": {"cached_tokens": 10}}  # type: ignore[dict-item]
    body = [event("ab"), event(finish="stop", usage=told), DONE]
    prices = {"prompt_price": 1e6, "completion_price": 0.0, "cached_prompt_price": 1e5}
    with replying(body, **prices) as api:
        api.chat_completion(HELLO)
    assert api.usage.cost == pytest.approx(2.0)


def test_usage_is_estimated_when_nobody_reports_it() -> None:
    api = api_of(lambda _: "x" * 360)
    api.chat_completion(user("y" * 720))
    usage = api.usage
    assert usage.is_estimated
    assert usage.calls == 1
    assert 150 <= usage.prompt_tokens <= 250
    assert 80 <= usage.completion_tokens <= 120
    assert usage.cost is None


def test_an_estimate_follows_what_the_server_reports() -> None:
    estimator, messages = TokenEstimator(), user("word " * 1000)
    before = estimator.estimate("m", messages, "")
    estimator.learn("m", messages, Usage(before.prompt_tokens * 2, 1))
    after = estimator.estimate("m", messages, "x" * 360)
    assert after.prompt_tokens == before.prompt_tokens * 2
    assert after.completion_tokens == 200
    assert estimator.estimate("other", messages, "").prompt_tokens == before.prompt_tokens


def test_other_scripts_and_images_are_counted() -> None:
    estimator = TokenEstimator()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    shown = user([{"type": "text", "text": "what is this?"}, image])
    assert 90 <= estimator.estimate("m", user("日本" * 50), "").prompt_tokens <= 120
    assert 100 < estimator.estimate("m", shown, "").prompt_tokens < 5000


def test_a_call_that_was_given_up_still_counts() -> None:
    api = api_of(lambda _: iter(["one", "two"]))
    with closing(api.chat_completion_stream(HELLO)) as pieces:  # type: ignore[type-var]
        next(pieces)
    assert api.usage.calls == 1


def test_calls_are_given_up_from_an_interrupt_until_they_are_taken_again() -> None:
    def model(_: Sequence[ChatMessage]) -> Iterator[str]:
        yield "one"
        if is_interrupting:
            api.interrupt()
        yield "two"

    is_interrupting, api = True, api_of(model)
    for _ in range(2):  # between two pieces, and before the first
        with pytest.raises(ModelError, match="given up"):
            api.chat_completion(HELLO)
    is_interrupting = False
    api.resume()
    assert api.chat_completion(HELLO)["content"] == "onetwo"


def test_a_rate_limited_call_is_made_again_and_the_user_is_told() -> None:
    told: list[str] = []

    def play(call: Call) -> None:
        if call.number == 0:
            call.answer(429, {"error": {"message": "slow down"}}, Retry_After="0")
        elif call.number == 1:
            call.refuse(500, "oops")
        else:
            call.stream(good("ab"))

    with serving(play) as endpoint, api_at(endpoint.url, max_retries=3) as api:
        pieces = api.chat_completion_stream(HELLO, on_status=told.append)
        assert [piece["content"] for piece in pieces] == ["ab"]
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
    with replying(blocks) as api, pytest.raises(ModelError) as caught:
        api.chat_completion(HELLO)
    assert caught.value.kind == kind
    assert api.usage.calls == 1


def test_a_summary_is_made_of_instructions_and_text() -> None:
    def model(messages: Sequence[ChatMessage]) -> str:
        assert messages == [
            {"role": "system", "content": "how"},
            {"role": "user", "content": "what"},
        ]
        return "short"

    assert api_of(model).summarize("how", "what") == "short"


@pytest.mark.parametrize("reply", [None, 3, ["a"], iter([b"a"])])
def test_a_function_must_return_text(reply: Any) -> None:
    with pytest.raises(ModelError, match="not text"):
        api_of(lambda _: reply).chat_completion(HELLO)


def test_texts_become_vectors_in_order() -> None:
    def play(call: Call) -> None:
        assert call.path == "/v1/embeddings"
        texts = call.body["input"]
        data = [{"index": at, "embedding": [float(len(text))]} for at, text in enumerate(texts)]
        call.answer(200, {"object": "list", "model": "e", "data": data[::-1]})

    with serving(play) as endpoint, api_at(endpoint.url, **EMBEDDING) as api:
        texts = ["x" * (at % 7 + 1) for at in range(600)]
        assert api.get_embedding_list(texts) == [[float(len(text))] for text in texts]
        assert api.get_embedding("abc") == [3.0]
        assert api.get_embedding("") == [1.0]
        assert api.get_embedding_list([]) == []
        assert [len(call.body["input"]) for call in endpoint.calls] == [256, 256, 88, 1, 1]
        assert endpoint.calls[0].body["model"] == "e1"


@pytest.mark.parametrize(
    ("status", "kind"), [(200, "malformed"), (401, "auth"), (404, "not_found")]
)
def test_an_answer_without_vectors_is_a_model_error(status: int, kind: str) -> None:
    with serving(lambda call: call.answer(status, {"data": []})) as endpoint:
        with api_at(endpoint.url, **EMBEDDING) as api, pytest.raises(ModelError) as caught:
            api.get_embedding("a")
        assert len(endpoint.calls) == 1
    assert caught.value.kind == kind


def test_without_an_embedding_model_the_error_says_what_to_set() -> None:
    for config in ({}, {"embedding_api_type": "openai"}):
        with pytest.raises(ModelError, match=r"llm\.embedding_model"):
            api_of(lambda _: "x", **config).get_embedding("a")


def test_a_connection_the_server_closed_meanwhile_is_replaced() -> None:
    def play(call: Call) -> None:
        call.stream(good("ab"))
        call.hang_up()

    with serving(play) as endpoint, api_at(endpoint.url, max_retries=3) as api:
        # Whether the closing is noticed before or after the next call is sent is up to chance.
        texts = [api.chat_completion(HELLO)["content"] for _ in range(5)]
    assert texts == ["ab"] * 5
