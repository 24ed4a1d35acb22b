"""Bodies of streamed replies: event streams or lines of JSON, read as events of one kind.

Of event streams (the ``text/event-stream`` format of the HTML standard) endpoints use only the data
of each event and the name ``error``, and so does their reader. Lines may end in LF or CRLF, and
blocks may end anywhere, also inside a character. A body that is one JSON object, as of a server
that knows no streams, is one event.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jiter

from taskweaver.llm.parsing.call_pieces import CallPiece
from taskweaver.llm.types import FinishReason, Usage

MAX_EVENT_BYTES = 8 << 20
"""Longest event that is read; a body without line breaks is not collected for ever."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DONE = b"[DONE]"
_BEGINNINGS = (b":", b"data:", b"event:", b"id:", b"retry:")


class NotAnEventStream(ValueError):
    """The bytes are no event stream. The error's text is their beginning."""


class EventReader:
    """Reader of the blocks of a response body, which yields the data of events.

    Attributes:
        is_object: Whether the body is one JSON object.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._is_begun = False
        self.is_object = False
        self._is_error = False

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Yield the data of every event that `block` completes.

        Raises:
            NotAnEventStream: If the body does not start like one, or an event has no end.
        """
        if self._is_begun and (self.is_object or b"\n" not in block):
            self._rest += block  # a long line is not copied for each block
        else:
            text = bytes(self._rest) + block
            text = text if self._is_begun else self._begin(text)
            lines = [text] if self.is_object else text.split(b"\n")
            self._rest = bytearray(lines.pop())
            for line in lines:
                yield from self._take(line.removesuffix(b"\r"))
        if len(self._rest) > MAX_EVENT_BYTES:
            raise NotAnEventStream(f"an event of more than {MAX_EVENT_BYTES:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """Yield the data that the end of the body completes.

        Raises:
            NotAnEventStream: If the body was no event stream, or empty.
        """
        last, self._rest = bytes(self._rest), bytearray()
        if self.is_object:
            yield last
            return
        yield from self._take(last.removesuffix(b"\r"))
        yield from self._take(b"")
        if not self._is_begun:
            raise NotAnEventStream(last.decode("utf-8", "replace"))

    def _begin(self, text: bytes) -> bytes:
        """Check that this is an event stream, once enough bytes have arrived."""
        if _BYTE_ORDER_MARK.startswith(text):  # it may have been cut
            return text
        text = text.removeprefix(_BYTE_ORDER_MARK).lstrip()
        self.is_object = text.startswith(b"{")
        self._is_begun = self.is_object or text.startswith(_BEGINNINGS)
        if not self._is_begun and not any(start.startswith(text) for start in _BEGINNINGS):
            raise NotAnEventStream(text.decode("utf-8", "replace"))
        return text

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                data = b"\n".join(self._data)
                yield _error_object(data) if self._is_error else data
                self._data.clear()
            self._is_error = False
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._is_error = value.strip() == b"error"


def _error_object(data: bytes) -> bytes:
    """Return the data of an event named ``error`` as an object with the error as a member."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = data.decode("utf-8", "replace")
    is_named = isinstance(value, dict) and value.get("error")
    return data if is_named else json.dumps({"error": value}).encode()


class LineReader:
    """Reader of the blocks of a response body, which yields lines, each one JSON object."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Yield every line that `block` completes.

        Raises:
            NotAnEventStream: If a line is no object, or has no end.
        """
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            yield from _checked_line(line)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise NotAnEventStream(f"a line of more than {MAX_EVENT_BYTES:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """Yield the line that the end of the body completes.

        Raises:
            NotAnEventStream: If it is no object.
        """
        last, self._rest = self._rest, b""
        yield from _checked_line(last)


def _checked_line(line: bytes) -> Iterator[bytes]:
    text = line.strip()
    if text and not text.startswith(b"{"):
        raise NotAnEventStream(text.decode("utf-8", "replace"))
    if text:
        yield text


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
    """An event of a reply cannot be read. `data` is the event as received."""

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
        try:  # broken UTF-8, or half an emoji: what cannot be read becomes U+FFFD
            value = json.loads(data.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError) as error:
            raise UnreadableEvent(data) from error
    if not isinstance(value, dict):
        raise UnreadableEvent(data)
    return value


def text_in(value: Any) -> str:
    """Return a piece of text, which may have come as a number, or "" for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if isinstance(value, str) or is_number else ""


class ReplyEvents(ABC):
    """Reader of the body of one reply."""

    def __init__(self, frames: EventReader | LineReader) -> None:
        self._frames = frames

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes.

        Raises:
            UnreadableEvent: If one cannot be read.
            NotAnEventStream: If the body is no stream of events.
        """
        return self._all(self._frames.feed(block))

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes. Raises as `feed`."""
        return self._all(self._frames.finish())

    @property
    @abstractmethod
    def items(self) -> Sequence[Mapping[str, Any]]:
        """Parts of the reply that have to go back as received, often none at all."""

    @abstractmethod
    def _events(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        """Yield the events in an object of the body."""

    def _all(self, frames: Iterator[bytes]) -> Iterator[StreamEvent]:
        for data in frames:
            if data == _DONE:
                yield StreamEvent(is_done=True)
            else:
                yield from self._events(event_object(data))


def usage_in(value: Any, read: str, written: str) -> Usage | None:
    """Return the consumption that a server of OpenAI's protocols reports, or None without a report.

    Args:
        value: The report.
        read: Word for what the model read, such as ``prompt``.
        written: Word for what the model wrote.
    """
    usage = mapping_in(value)
    prompt, completion = usage.get(f"{read}_tokens"), usage.get(f"{written}_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    if prompt <= 0 or completion < 0:
        return None
    cached = mapping_in(usage.get(f"{read}_tokens_details")).get("cached_tokens")
    thought = mapping_in(usage.get(f"{written}_tokens_details")).get("reasoning_tokens")
    return Usage(
        prompt,
        completion,
        calls=1,
        cached_tokens=_count(cached) or _count(usage.get("prompt_cache_hit_tokens")),
        reasoning_tokens=_count(thought),
    )


def _count(count: Any) -> int:
    return count if isinstance(count, int) and count > 0 else 0


def mapping_in(value: Any) -> Mapping[str, Any]:
    """Return a member that is an object, or an empty object for any other value."""
    return value if isinstance(value, Mapping) else {}


def mappings_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a member that is a list, or none for any other value."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []
