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


class Failing:
    """A model whose calls all fail, after a text or none."""

    model = "failing"

    def __init__(self, error: ModelError, text_before: str = "") -> None:
        self.calls = 0
        self._error, self._text_before = error, text_before

    def stream(self, _request: ModelRequest) -> Iterator[Chunk]:
        self.calls += 1
        if self._text_before:
            yield Chunk(self._text_before)
        raise self._error

    def close(self) -> None:
        pass


def error(kind: ModelErrorKind, retry_after_s: float | None = AT_ONCE) -> ModelError:
    return ModelError(kind, "no", "failing", "", retry_after_s)


@pytest.mark.parametrize(
    "kind", ["quota", "auth", "bad_request", "context_overflow", "content_filter", "truncated"]
)
def test_what_will_not_pass_or_was_shown_in_part_is_not_tried_again(kind: ModelErrorKind) -> None:
    for service in (Failing(error(kind)), Failing(error("connection"), text_before="some")):
        with pytest.raises(ModelError):
            list(stream_with_retries(service, ModelRequest([]), RetryPolicy()))
        assert service.calls == 1


def test_a_wait_is_given_up_when_the_call_is() -> None:
    token = CancelToken()
    chunks = stream_with_retries(
        Failing(error("rate_limit", 30.0)), ModelRequest([], cancel=token), RetryPolicy()
    )
    threading.Timer(0.1, token.cancel).start()
    since = monotonic()
    with pytest.raises(ModelError) as caught:
        list(chunks)
    assert caught.value.kind == "cancelled"
    assert monotonic() - since < SOON_S


@pytest.mark.parametrize(
    ("wish", "seconds"),
    [("7", 7.0), ("1.5", 1.5), ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0), ("soon", None),
     ("-3", None), ("inf", None)],
)  # fmt: skip
def test_the_wish_of_the_server_is_read(wish: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": wish}) == seconds
    assert retry_after({"retry-after-ms": "250", "retry-after": wish}) == 0.25
    assert retry_after({}) is None


def test_64_silence_is_tried_twice_again_and_each_try_is_shown() -> None:
    service = Failing(error("timeout"))
    shown: list[str] = []
    with pytest.raises(ModelError) as caught:
        list(stream_with_retries(service, ModelRequest([]), RetryPolicy(), shown.append))
    assert caught.value.kind == "timeout"
    assert service.calls == 3
    assert [line.rpartition("(")[2] for line in shown] == ["1 of 2)", "2 of 2)"]
