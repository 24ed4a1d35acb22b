"""What the caller sees when an endpoint works, and when it does not."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable
from contextlib import closing
from time import monotonic
from typing import Any

import pytest
from fake_endpoint import SOON_S, Call, event, good, serving
from patience import PATIENCE_S
from scripted_server import delta

from taskweaver.llm.dialects.switch import DialectName, dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.transport.exchange import Deadlines
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest, format_chat_message
from taskweaver.utils.redact import MASK
from taskweaver.utils.system.cancel import CancelToken

QUICK = Deadlines(connect_s=0.5, first_token_s=0.4, gap_s=0.4, total_s=1.5)
KEY = "very-private-0123456789"
SCHEMA = {"type": "object", "properties": {"response": {"type": "string"}}}
Play = Callable[[Call], None]


def request(text: str = "hello", **more: Any) -> ModelRequest:
    messages: list[ChatMessage] = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": text},
    ]
    return ModelRequest(messages, **more)


def ask(play: Play, wanted: ModelRequest | None = None, **options: Any) -> tuple[str, Chunk]:
    """Return the text and the last chunk of a call to an endpoint that does `play`."""
    with serving(play) as endpoint:
        return read(service_at(endpoint.url, **options), wanted or request())


def service_at(url: str, **options: Any) -> EndpointService:
    return EndpointService(EndpointFacts(Endpoint(url, "m1", KEY)), **options)


def read(service: EndpointService, wanted: ModelRequest) -> tuple[str, Chunk]:
    with closing(service):
        chunks = list(service.stream(wanted))
    return "".join(chunk.text for chunk in chunks), chunks[-1]


def failure_of(play: Play, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(play, **options)
    error = caught.value
    assert KEY not in str(error)
    assert len(error.detail.encode()) <= 2048
    return error


# What works


def test_text_arrives_while_the_endpoint_still_writes() -> None:
    seen = threading.Event()

    def play(call: Call) -> None:
        call.start()
        call.send(event("first"))
        assert seen.wait(PATIENCE_S)
        for block in good(" second"):
            call.send(block)
        call.end()

    with serving(play) as endpoint, closing(service_at(endpoint.url)) as service:
        texts = []
        for chunk in service.stream(request()):
            texts.append(chunk.text)
            seen.set()
    assert "".join(texts) == "first second"


def test_parts_of_a_message_are_sent_as_they_are_but_encodable() -> None:
    bodies: list[Any] = []

    def play(call: Call) -> None:
        bodies.append(call.body)
        call.stream(good("ok"))

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = format_chat_message("user", "what \ud83d?", [image["image_url"]["url"]], name="me")
    ask(play, ModelRequest([message], schema=SCHEMA), response_format="text")
    told, sent = bodies[0]["messages"]
    assert told["role"] == "system"
    assert "JSON schema" in told["content"]
    assert sent["content"] == [{"type": "text", "text": "what \ufffd?"}, image]
    assert sent["name"] == "me"


BYTEWISE = b"".join(good("é", "😀", "日本"))
PARTS = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ab"}]
STREAMS: dict[str, tuple[list[bytes], str]] = {
    "crlf": ([block.replace(b"\n", b"\r\n") for block in good("a", "b")], "ab"),
    "bytewise": ([BYTEWISE[at : at + 1] for at in range(len(BYTEWISE))], "é😀日本"),
    "comments": ([b": ping\n\n", b"event: message\nid: 1\n", *good("ab")], "ab"),
    "no done": ([event("ab"), event(finish="stop")], "ab"),
    "no space": ([block.replace(b"data: ", b"data:") for block in good("ab")], "ab"),
    "no last newline": ([event("ab"), event(finish="stop").rstrip()], "ab"),
    "empty choices": ([b'data: {"choices": []}\n\n', b'data: {"choices": null}\n\n', *good("ab")],
                      "ab"),
    "null delta": ([b'data: {"choices": [{"delta": null}]}\n\n', *good("ab")], "ab"),
    "null content": ([delta(role="assistant", content=None), *good("ab")], "ab"),
    "parts": ([delta(content=PARTS), *good()], "ab"),
    "mark": ([b"\xef", b"\xbb\xbf\n", *good("ab")], "ab"),
    "halves": ([delta(content="\ud83d"), delta(content="\ude00"), *good()], "😀"),
    "broken": ([event("a?b").replace(b"?", b"\xff"), *good("c")], "a\ufffdbc"),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_every_usual_form_of_a_stream_is_read(name: str) -> None:
    blocks, text = STREAMS[name]
    read_text, last = ask(lambda call: call.stream(blocks))
    assert read_text == text
    assert last.finish == "stop"


def test_a_server_that_holds_the_connection_after_the_end_does_not_hold_the_caller() -> None:
    since = monotonic()
    text, last = ask(stalls_after(*good("ab")))
    assert (text, last.finish) == ("ab", "stop")
    assert monotonic() - since < SOON_S


def test_calls_one_after_the_other_share_a_connection() -> None:
    with serving(lambda call: call.stream(good("ab"))) as endpoint:
        with closing(service_at(endpoint.url)) as service:
            for _ in range(3):
                assert list(service.stream(request()))
        assert endpoint.connections == 1


def test_loopback_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(lambda call: call.stream(good("ab")))[0] == "ab"


# What the endpoint refuses


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "This model's maximum context length is 4096 tokens.", "context_overflow"),
        (400, "Filtered by the content management policy", "content_filter"),
        (400, "messages: wrong order", "bad_request"), (401, "Incorrect API key provided", "auth"),
        (402, "Insufficient Balance", "quota"), (403, "not for you", "auth"),
        (404, "The model `m1` does not exist", "not_found"), (408, "slow", "timeout"),
        (413, "too large", "context_overflow"), (422, "strange", "bad_request"),
        (429, "slow down", "rate_limit"), (429, "You exceeded your current quota", "quota"),
        (500, "oops", "overloaded"),
        (500, "the request exceeds the available context size", "context_overflow"),
        (501, "not implemented", "bad_request"), (503, "busy", "overloaded"),
        (529, "busy", "overloaded"),
    ],
)  # fmt: skip
def test_a_refusal_has_a_kind_and_the_servers_words(status: int, message: str, kind: str) -> None:
    error = failure_of(lambda call: call.refuse(status, message))
    assert error.kind == kind
    assert message.split("`", maxsplit=1)[0] in error.detail
    assert str(status) in error.detail
    assert error.model == "m1"


def test_a_key_that_the_server_echoes_is_masked() -> None:
    error = failure_of(lambda call: call.refuse(401, f"Incorrect API key provided: {KEY}"))
    assert MASK in error.detail
    assert "llm.api_key" in error.hint


# What is not a stream


@pytest.mark.parametrize(
    ("body", "content_type"),
    [("<!doctype html><html>Please log in</html>", "text/html"), ("Please log in", "text/plain"),
     ("", "text/event-stream"), ("\n\n\n", "text/event-stream")],
)  # fmt: skip
def test_anything_but_an_event_stream_is_malformed(body: str, content_type: str) -> None:
    blocks = [body.encode()] if body else []
    error = failure_of(lambda call: call.stream(blocks, content_type=content_type))
    assert error.kind == "malformed"
    assert "llm.api_base" in error.hint
    assert body[:10].strip() in error.detail


WHOLE = {
    "chat": {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]},
    "anthropic": {
        "type": "message", "content": [{"type": "text", "text": "whole"}],
        "stop_reason": "end_turn",
    },
    "responses": {
        "object": "response", "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "whole"}]}],
    },
    "ollama": {"message": {"content": "whole"}, "done": True, "done_reason": "stop"},
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_body_in_place_of_a_stream_is_the_reply(name: DialectName) -> None:
    body = b"  " + json.dumps(WHOLE[name]).encode()
    reader = dialect_named(name).events()
    events = [*reader.feed(body[:9]), *reader.feed(body[9:]), *reader.finish()]
    assert "".join(event.text for event in events) == "whole"
    assert "stop" in {event.finish for event in events}


def test_a_line_without_end_is_given_up() -> None:
    def play(call: Call) -> None:
        call.start()
        call.send(b"data: {")
        for _ in range(200):
            call.send(b"x" * 100_000)

    assert failure_of(play).kind == "malformed"


# What takes too long


def stalls_after(*blocks: bytes) -> Play:
    def play(call: Call) -> None:
        call.start()
        for block in blocks:
            call.send(block)
        call.stall()

    return play


def repeats(block: bytes) -> Play:
    def play(call: Call) -> None:
        call.start()
        while not call._released.wait(0.05):
            call.send(block)

    return play


ENDLESS: dict[str, Play] = {
    "no head": Call.stall,
    "head": stalls_after(),
    "text": stalls_after(event("ab")),
    "half an event": stalls_after(event("ab") + b'data: {"choi'),
    "comments": repeats(b": still here\n\n"),
    "texts": repeats(event(".")),
}


@pytest.mark.parametrize("play", ENDLESS.values(), ids=ENDLESS)
def test_whatever_never_ends_is_ended_by_a_deadline_and_from_another_thread(play: Play) -> None:
    since = monotonic()
    assert failure_of(play, deadlines=QUICK).kind == "timeout"
    token = CancelToken()
    threading.Timer(0.3, token.cancel).start()
    with pytest.raises(ModelError) as caught:
        ask(play, request(cancel=token))
    assert caught.value.kind == "cancelled"
    assert monotonic() - since < SOON_S


def test_a_call_given_up_leaves_the_server() -> None:
    left = threading.Event()

    def play(call: Call) -> None:
        call.start()
        try:
            while not call._released.wait(0.01):
                call.send(event("."))
        except OSError:
            left.set()

    with serving(play) as endpoint, closing(service_at(endpoint.url)) as service:
        chunks = service.stream(request())
        next(iter(chunks))
        del chunks
        gc.collect()
        assert left.wait(PATIENCE_S)


def test_a_call_cancelled_before_it_starts_is_not_made_to_wait() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(ModelError, match="given up"):
        ask(Call.stall, request(cancel=token))


# What a model does not take


def test_an_endpoint_that_always_complains_is_not_asked_for_ever() -> None:
    with serving(lambda call: call.refuse(400, "response_format unsupported")) as endpoint:
        with pytest.raises(ModelError, match="bad request"):
            read(service_at(endpoint.url), request(schema=SCHEMA))
        assert len(endpoint.calls) == 3
