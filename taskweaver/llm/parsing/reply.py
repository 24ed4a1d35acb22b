"""Reads the body of a streamed reply: events to text, and whether it came to its end."""

from __future__ import annotations

from collections.abc import Iterator

from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.sse import EventReader, NotAnEventStream
from taskweaver.llm.parsing.wire import StreamEvent, read_event
from taskweaver.llm.surrogates import SurrogateJoiner
from taskweaver.llm.transport.failures import failure, stream_failure
from taskweaver.llm.types import Chunk, FinishReason, Usage

MAX_TEXT_CHARS = 2 << 20
"""Longest reply that is taken; a model that goes on after that has lost its way."""

_DONE = b"[DONE]"


class ReplyReader:
    """One reply, block by block.

    Attributes:
        events: Number of events read.
        length: Characters written so far.
        finish: Reason the reply ended; None before its end.
        usage: Consumption of the call, once the server reported it.
        is_done: Whether the server announced the end.
        answered_by: Name of the model that answers, once the server named it.
    """

    def __init__(self, model: str) -> None:
        self.events = 0
        self.length = 0
        self.finish: FinishReason | None = None
        self.usage: Usage | None = None
        self.is_done = False
        self.answered_by = ""
        self._model = model
        self._refusal = ""
        self._reader = EventReader()
        self._joiner = SurrogateJoiner()

    def feed(self, block: bytes) -> str:
        """Read a block of the body; return the text that is new.

        Raises:
            ModelError: If it is not part of a reply, or the server reports an error.
        """
        return self._take(self._reader.feed(block))

    def end(self) -> str:
        """Read the remainder at the end of the body; return its new text.

        Raises:
            ModelError: As `feed`.
        """
        return self._take(self._reader.finish())

    def last(self) -> Chunk:
        """Return the chunk that ends the reply.

        Raises:
            ModelError: Of kind ``refusal`` or ``truncated``.
        """
        if self._refusal:
            raise failure("refusal", self._refusal, self._model)
        if self.finish is None:
            detail = "the reply ended without saying that it was complete."
            raise failure("truncated", detail, self._model, hint="Try again.")
        return Chunk(self._joiner.finish(), self.finish, self.usage, self.answered_by)

    def _take(self, events: Iterator[bytes]) -> str:
        try:
            texts = [self._add(data) for data in events]
        except NotAnEventStream as error:
            raise self._not_a_stream(error.beginning) from error
        return "".join(texts)

    def _add(self, data: bytes) -> str:
        self.events += 1
        if self.is_done or data == _DONE:
            self.is_done = True
            return ""
        event = self._read(data)
        if event.error is not None:
            raise stream_failure(event.error, self._model)
        self.finish = self.finish or event.finish
        self.usage = event.usage or self.usage
        self.answered_by = event.model or self.answered_by
        self._refusal += event.refusal
        self.length += len(event.text) + len(event.refusal)
        if self.length > MAX_TEXT_CHARS:
            detail = f"the reply went on after {MAX_TEXT_CHARS:,} characters and was given up."
            raise failure("malformed", detail, self._model, hint="")
        return self._joiner.feed(event.text)

    def _read(self, data: bytes) -> StreamEvent:
        try:
            return read_event(data)
        except (ValueError, RecursionError) as error:
            shown = data[:300].decode("utf-8", "replace")
            detail = f"an event of the reply cannot be read: {shown}"
            raise failure("malformed", detail, self._model) from error

    def _not_a_stream(self, beginning: str) -> ModelError:
        try:
            event = read_event(beginning.encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            event = StreamEvent()
        if event.error is not None:
            return stream_failure(event.error, self._model)
        shown = " ".join(beginning[:300].split()) or "nothing"
        return failure("malformed", f"the server sent no event stream but: {shown}", self._model)
