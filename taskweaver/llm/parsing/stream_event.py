"""One event of a streamed reply, whatever the protocol it came in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jiter

from taskweaver.llm.parsing.call_pieces import CallPiece
from taskweaver.llm.types import FinishReason, Usage


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a streamed reply.

    Attributes:
        text: New text of the reply.
        refusal: New text of a refusal, which some models give in place of a reply.
        finish: Reason the reply ended.
        usage: Consumption of the call.
        error: An error object, when the server failed.
        model: Name of the model that answers.
        reasoning: New text of the reasoning.
        calls: Pieces of tool calls.
        is_broken: Whether the reply ended by a failure of the model's server.
        is_done: Whether the server announced that nothing follows.
        returned: Fields that go back with the reply's calls, by name.
        paused: The parts of the reply so far, when the server goes on once it has them back.
    """

    text: str = ""
    refusal: str = ""
    finish: FinishReason | None = None
    usage: Usage | None = None
    error: Any = None
    model: str = ""
    reasoning: str = ""
    calls: tuple[CallPiece, ...] = ()
    is_broken: bool = False
    is_done: bool = False
    returned: Mapping[str, Any] = field(default_factory=dict)
    paused: tuple[Mapping[str, Any], ...] = ()


class UnreadableEvent(ValueError):
    """An event of a reply cannot be read; `data` is how it came."""

    def __init__(self, data: bytes) -> None:
        super().__init__("an event cannot be read")
        self.data = data


def event_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object that is the data of an event.

    Raises:
        UnreadableEvent: If it is none.
    """
    try:
        value = jiter.from_json(data, cache_mode="keys")
    except ValueError:
        # Broken UTF-8, or half an emoji: what cannot be read becomes U+FFFD.
        value = _read_leniently(data)
    if not isinstance(value, dict):
        raise UnreadableEvent(data)
    return value


def _read_leniently(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise UnreadableEvent(data) from error


def text_in(value: Any) -> str:
    """Return a piece of text, which may have come as a number; "" for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if isinstance(value, str) or is_number else ""


class ReplyEvents(Protocol):
    """Reader of the body of one reply."""

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes.

        Raises:
            UnreadableEvent: If one cannot be read.
            NotAnEventStream: If the body is no stream of events.
        """
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes.

        Raises:
            UnreadableEvent: As `feed`.
            NotAnEventStream: As `feed`.
        """
        ...

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """Parts of the reply that have to go back as they came; empty where none has."""
        ...
