"""When a failed call is made again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import monotonic

import pytest
from fake_endpoint import SOON_S

from taskweaver.llm.errors import ModelError, ModelErrorKind
from taskweaver.llm.transport.failures import retry_after
from taskweaver.llm.transport.retry import RetryPolicy, stream_with_retries
from taskweaver.llm.types import Chunk, ModelRequest
from taskweaver.utils.system.cancel import CancelToken

AT_ONCE = 0.001


class Flaky:
    """Fails with the given errors, one per call, then answers."""

    model = "flaky"

    def __init__(self, *errors: ModelError, text_before: str = "") -> None:
        self.errors = list(errors)
        self.calls = 0
        self._text_before = text_before

    def stream(self, _request: ModelRequest) -> Iterator[Chunk]:
        self.calls += 1
        if self.errors:
            if self._text_before:
                yield Chunk(self._text_before)
            raise self.errors.pop(0)
        yield Chunk("fine")
        yield Chunk(finish="stop")

    def close(self) -> None:
        pass


def error(kind: ModelErrorKind, retry_after_s: float | None = AT_ONCE) -> ModelError:
    return ModelError(kind, "no", "flaky", "", retry_after_s)


def ask(service: Flaky, policy: RetryPolicy | None = None) -> str:
    chunks = stream_with_retries(service, ModelRequest([]), policy or RetryPolicy())
    return "".join(chunk.text for chunk in chunks)


@pytest.mark.parametrize(
    "kind", ["quota", "auth", "bad_request", "context_overflow", "content_filter", "truncated"]
)
def test_what_will_not_pass_is_not_tried_again(kind: ModelErrorKind) -> None:
    service = Flaky(error(kind))

    with pytest.raises(ModelError):
        ask(service)
    assert service.calls == 1


def test_nothing_is_tried_again_once_text_was_shown() -> None:
    service = Flaky(error("connection"), text_before="some")

    with pytest.raises(ModelError):
        ask(service)
    assert service.calls == 1


def test_a_wait_is_given_up_when_the_call_is() -> None:
    token = CancelToken()
    chunks = stream_with_retries(
        Flaky(error("rate_limit", 30.0)), ModelRequest([], cancel=token), RetryPolicy()
    )
    timer = threading.Timer(0.1, token.cancel)
    timer.start()
    since = monotonic()

    with pytest.raises(ModelError) as caught:
        list(chunks)

    assert caught.value.kind == "cancelled"
    assert monotonic() - since < SOON_S


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_the_wish_of_the_server_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_64_silence_is_tried_twice_again_and_each_try_is_shown() -> None:
    service = Flaky(*(error("timeout") for _ in range(9)))
    shown: list[str] = []

    with pytest.raises(ModelError) as caught:
        list(stream_with_retries(service, ModelRequest([]), RetryPolicy(), shown.append))

    assert caught.value.kind == "timeout"
    assert service.calls == 3
    assert [line.rpartition("(")[2] for line in shown] == ["1 of 2)", "2 of 2)"]
