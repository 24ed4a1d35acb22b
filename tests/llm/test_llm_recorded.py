"""Recording what a model said, and playing it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taskweaver.llm.errors import ModelError
from taskweaver.llm.providers.recorded import RecordedMode, RecordedService
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest, Usage


class Counter:
    """A model that numbers its replies."""

    model = "counter"

    def __init__(self) -> None:
        self.calls = 0
        self.is_closed = False

    def stream(self, _request: ModelRequest) -> Iterator[Chunk]:
        self.calls += 1
        yield Chunk(f"reply\n{self.calls} ")
        yield Chunk("ü")
        yield Chunk("", "stop", Usage(7, 2, None, 1))

    def close(self) -> None:
        self.is_closed = True


def request(text: str = "hello", system: str = "be brief", **more: Any) -> ModelRequest:
    messages: list[ChatMessage] = [
        {"role": "system", "content": system},
        {"role": "user", "content": text},
    ]
    return ModelRequest(messages, **more)


def nobody() -> Counter:
    raise AssertionError("no model may be asked")


def ask(service: RecordedService, wanted: ModelRequest) -> str:
    return "".join(chunk.text for chunk in service.stream(wanted))


def service(path: Path, mode: RecordedMode, model: Counter | None = None) -> RecordedService:
    return RecordedService(path, mode, (lambda: model) if model else nobody)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "recorded.yaml"


def test_only_misses_are_asked_when_both_are_allowed(path: Path) -> None:
    model = Counter()
    both = service(path, "play_or_record", model)
    assert ask(both, request("a")) == ask(both, request("a"))
    ask(both, request("b"))
    again = service(path, "play_or_record", model)
    ask(again, request("b"))
    both.close()
    assert model.calls == 2
    assert model.is_closed


@pytest.mark.parametrize(
    "other",
    [
        request("other"), request(system="be long"), request(schema={"type": "object"}),
        request(temperature=0.5), request(stop=["x"]), request(extra={"top_k": 1}),
    ],
)  # fmt: skip
def test_another_request_is_a_miss(path: Path, other: ModelRequest) -> None:
    ask(service(path, "record", Counter()), request())
    with pytest.raises(ModelError) as caught:
        ask(service(path, "play"), other)
    assert caught.value.kind == "recording_miss"
    assert str(path) in caught.value.detail


def test_a_miss_names_a_differing_length_or_parameter(path: Path) -> None:
    recorder = service(path, "record", Counter())
    ask(recorder, request())
    longer = ModelRequest([*request().messages, {"role": "user", "content": "and?"}])
    with pytest.raises(ModelError, match="3 messages are asked, 2 recorded"):
        ask(service(path, "play"), longer)
    with pytest.raises(ModelError, match="differs in temperature"):
        ask(service(path, "play"), request(temperature=1.0))


def test_todays_date_in_the_environment_section_does_not_matter(path: Path) -> None:
    before = request(system="be brief\n\n## Environment\nToday is Monday.")
    after = request(system="be brief\n\n## Environment\nToday is Friday.")
    ask(service(path, "record", Counter()), before)
    assert ask(service(path, "play"), after)


def test_secrets_do_not_get_into_the_file(path: Path) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz0123"
    ask(service(path, "record", Counter()), request(f"use {secret}"))
    assert secret not in path.read_text()
    assert ask(service(path, "play"), request(f"use {secret}"))
    with pytest.raises(ModelError) as caught:
        ask(service(path, "play"), request("use none"))
    assert secret not in str(caught.value)


@pytest.mark.parametrize("content", ["- key: [", "just text", "- nothing: here", "[1, 2]", "\x00"])
def test_a_file_that_cannot_be_read_or_written_is_named(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(ModelError) as caught:
        ask(service(path, "play"), request())
    assert caught.value.kind == "configuration"
    assert str(path) in caught.value.detail
    with pytest.raises(ModelError) as caught:
        ask(service(path / "below.yaml", "record", Counter()), request())
    assert caught.value.kind == "configuration"
