"""Chat completions, the protocol of OpenAI-compatible endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from taskweaver.llm.dialects.chat_replies import ChatReply, written_back
from taskweaver.llm.dialects.chat_wire import read_event, tool_option
from taskweaver.llm.dialects.dialect import Sampling, given
from taskweaver.llm.dialects.structured import ResponseFormat, format_option
from taskweaver.llm.images import after_results
from taskweaver.llm.parsing.sse import EventReader
from taskweaver.llm.parsing.stream_event import StreamEvent
from taskweaver.llm.types import ChatMessage, ModelRequest

_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """Chat completions.

    Attributes:
        has_cache_key: Whether the endpoint is given the key of its cache.
    """

    has_cache_key: bool = False

    name: ClassVar[str] = "chat"
    path: ClassVar[str] = "/chat/completions"
    format_parameter: ClassVar[str] = "response_format"

    def headers(self, _key: str, /) -> Mapping[str, str]:
        """Return none: the client's own are those of this protocol."""
        return {}

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but its messages."""
        parameters: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "stop": sampling.stop,
            "seed": sampling.seed,
            "reasoning_effort": sampling.reasoning_effort,
            "prompt_cache_key": (request.cache_key or None) if self.has_cache_key else None,
        }
        if request.schema is not None:
            parameters["response_format"] = format_option(request.schema, response_format)
        parameters |= request.extra
        if request.tools:  # endpoints refuse tools and a schema together
            parameters.pop("response_format", None)
            parameters["tools"] = tool_option(request.tools)
            parameters["tool_choice"] = "none" if request.tool_choice == "none" else None
        return parameters

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request; images of results follow the results."""
        sent = written_back(after_results(messages))
        return {**given(parameters.items()), "model": model, "messages": sent, "stream": True}

    def events(self) -> ChatEvents:
        """Return a reader for the body of one reply."""
        return ChatEvents()


class ChatEvents:
    """Reader of one reply in chunks."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._reply = ChatReply()

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes."""
        return map(self._event, self._reader.feed(block))

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes."""
        for event in map(self._event, self._reader.finish()):
            is_whole = self._reader.is_object and bool(event.text or event.calls)
            yield replace(event, finish="stop") if is_whole and not event.finish else event

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The message, if it has calls and reasoning or data of the provider go back with them."""
        return self._reply.items()

    def _event(self, data: bytes) -> StreamEvent:
        if data == _DONE:
            return StreamEvent(is_done=True)
        event = read_event(data)
        self._reply.add(event)
        return event
