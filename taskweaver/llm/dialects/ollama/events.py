"""Lines of a reply of Ollama: text, thinking, whole calls, and the counts of the last line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taskweaver.llm.parsing.call_pieces import read_pieces
from taskweaver.llm.parsing.ndjson import LineReader
from taskweaver.llm.parsing.stream_event import StreamEvent, event_object, text_in
from taskweaver.llm.types import FinishReason, Usage


class OllamaEvents:
    """Reader of one reply in lines."""

    def __init__(self) -> None:
        self._reader = LineReader()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Mapping[str, Any]] = []

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes."""
        for line in self._reader.feed(block):
            yield from self._events(line)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes."""
        for line in self._reader.finish():
            yield from self._events(line)

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The reply as one message, if it thought before it made calls; else nothing."""
        if not (self._thoughts and self._calls):
            return ()
        message = {
            "role": "assistant",
            "content": "".join(self._texts),
            "thinking": "".join(self._thoughts),
            "tool_calls": list(self._calls),
        }
        return (message,)

    def _events(self, line: bytes) -> Iterator[StreamEvent]:
        value = event_object(line)
        if value.get("error"):
            yield StreamEvent(error=value["error"])
            return
        message = value.get("message")
        message = message if isinstance(message, dict) else {}
        text, thought = text_in(message.get("content")), text_in(message.get("thinking"))
        calls = message.get("tool_calls")
        self._texts += [text] if text else []
        self._thoughts += [thought] if thought else []
        self._calls += [call for call in calls or () if isinstance(call, dict)]
        is_last = value.get("done") is True
        finish: FinishReason = "length" if value.get("done_reason") == "length" else "stop"
        yield StreamEvent(
            text,
            reasoning=thought,
            calls=read_pieces(message),
            finish=finish if is_last else None,
            usage=_usage(value) if is_last else None,
            model=text_in(value.get("model")),
        )
        if is_last:
            yield StreamEvent(is_done=True)


def _usage(value: Mapping[str, Any]) -> Usage | None:
    prompt, completion = value.get("prompt_eval_count"), value.get("eval_count", 0)
    if not isinstance(prompt, int) or not isinstance(completion, int) or prompt <= 0:
        return None
    return Usage(prompt, max(completion, 0), calls=1)
