"""Events of a streamed response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taskweaver.llm.dialects.responses.usage import read_usage
from taskweaver.llm.parsing.call_pieces import CallPiece
from taskweaver.llm.parsing.sse import EventReader
from taskweaver.llm.parsing.stream_event import StreamEvent, event_object, text_in
from taskweaver.llm.types import FinishReason

_DONE = b"[DONE]"
_MOST_KEPT_BYTES = 4 << 20
"""Most of a reply that is kept to go back."""

_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_REASONING = ("response.reasoning_summary_text", "response.reasoning_text")


class ResponsesEvents:
    """Reader of one response. What came in no piece is taken from its whole item."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._places: dict[str, int] = {}
        self._begun: set[tuple[int, str]] = set()
        self._summary: tuple[int, int] | None = None
        self._items: dict[int, Mapping[str, Any]] = {}
        self._kept_bytes = 0
        self._is_whole = False

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes."""
        for data in self._reader.feed(block):
            yield from self._events(data)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes."""
        for data in self._reader.finish():
            yield from self._events(data)

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The items of a whole response that reasoned or marks its texts; else none."""
        if not self._is_whole or self._kept_bytes > _MOST_KEPT_BYTES:
            return ()
        kept = [item for _, item in sorted(self._items.items()) if _can_go_back(item)]
        return kept if any(_is_own(item) for item in kept) else ()

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
        if data == _DONE:
            yield StreamEvent(is_done=True)
            return
        value = event_object(data)
        kind = str(value.get("type") or "")
        if kind == "error" or (value.get("error") and not kind):
            yield StreamEvent(error=_error(value.get("error") or value))
        elif kind in _ENDS:
            yield from self._end(_ENDS[kind], _mapping(value.get("response")))
        elif not kind and value.get("object") == "response":  # a body that is no stream
            yield from self._end("", value)
        elif kind == "response.created":
            yield StreamEvent(model=text_in(_mapping(value.get("response")).get("model")))
        elif kind.startswith("response.output_item."):
            is_done = kind.endswith("done")
            self._kept_bytes += len(data) if is_done else 0
            item = _mapping(value.get("item"))
            yield from self._item(self._place(value, item), item, is_done=is_done)
        elif kind.endswith((".delta", ".done")):
            yield from self._piece(kind, value)

    def _place(self, value: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """Return the place of an item in the response; by its id where the event has none."""
        place = value.get("output_index")
        if isinstance(place, int):
            return place
        return self._places.setdefault(
            text_in(value.get("item_id") or item.get("id")), len(self._places)
        )

    def _piece(self, kind: str, value: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield a piece of an item, or a whole part of which no piece came."""
        name, _, step = kind.rpartition(".")
        place = self._place(value, {})
        if name == "response.output_text":
            yield from self._new(
                place, "text", step, text_in(value.get("delta", value.get("text")))
            )
        elif name == "response.refusal":
            words = text_in(value.get("delta", value.get("refusal")))
            yield from self._new(place, "refusal", step, words)
        elif name == "response.function_call_arguments":
            arguments = text_in(value.get("delta", value.get("arguments")))
            yield from self._new(place, "arguments", step, arguments)
        elif name in _REASONING and step == "delta":
            part = (place, value.get("summary_index", 0))
            gap = "\n\n" if self._summary not in (None, part) else ""
            self._summary = part
            self._begun.add((place, "reasoning"))
            yield StreamEvent(reasoning=gap + text_in(value.get("delta")))

    def _new(self, place: int, what: str, step: str, text: str) -> Iterator[StreamEvent]:
        """Yield a piece, or a whole of which no piece came."""
        if not text or (step == "done" and (place, what) in self._begun):
            return
        self._begun.add((place, what))
        if what == "text":
            yield StreamEvent(text)
        elif what == "refusal":
            yield StreamEvent(refusal=text)
        else:
            yield StreamEvent(calls=(CallPiece(place, "", "", text, {}),))

    def _item(self, place: int, item: Mapping[str, Any], *, is_done: bool) -> Iterator[StreamEvent]:
        """Yield what an item has that came in no piece."""
        kind = item.get("type")
        if is_done:
            self._items[place] = item
        if kind == "function_call":
            if (place, "call") not in self._begun:
                self._begun.add((place, "call"))
                call_id, name = text_in(item.get("call_id")), text_in(item.get("name"))
                yield StreamEvent(calls=(CallPiece(place, call_id, name, "", {}),))
            if is_done:
                yield from self._new(place, "arguments", "done", text_in(item.get("arguments")))
        elif kind == "message" and is_done:
            for what in ("text", "refusal"):
                parts = [text_in(part.get(what)) for part in _mappings(item.get("content"))]
                yield from self._new(place, what, "done", "".join(parts))
        elif kind == "reasoning" and is_done and (place, "reasoning") not in self._begun:
            self._begun.add((place, "reasoning"))
            parts = [text_in(part.get("text")) for part in _mappings(item.get("summary"))]
            yield StreamEvent(reasoning="\n\n".join(parts))

    def _end(self, status: str, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        status = text_in(response.get("status")) or status
        usage, model = read_usage(response.get("usage")), text_in(response.get("model"))
        if status == "failed" or response.get("error"):
            yield StreamEvent(usage=usage, model=model)
            yield StreamEvent(error=_error(response.get("error")))
            return
        if not self._begun and not self._items:
            for place, item in enumerate(_mappings(response.get("output"))):
                self._kept_bytes += len(str(item))
                yield from self._item(place, item, is_done=True)
        self._is_whole = status == "completed"
        reason = text_in(_mapping(response.get("incomplete_details")).get("reason"))
        finish = "stop" if self._is_whole else _INCOMPLETE.get(reason)
        yield StreamEvent(finish=finish, usage=usage, model=model, is_broken=finish is None)


def _can_go_back(item: Mapping[str, Any]) -> bool:
    """Return whether an item is whole without the server's storage."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content"))


def _is_own(item: Mapping[str, Any]) -> bool:
    """Return whether an item says more than a message in neutral form."""
    return item.get("type") == "reasoning" or bool(item.get("phase"))


def _error(error: Any) -> Any:
    if not isinstance(error, Mapping):
        return error or "the response failed without an explanation"
    known = {name: error[name] for name in ("message", "code") if error.get(name)}
    return known or "the response failed without an explanation"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []
