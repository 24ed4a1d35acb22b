"""Reads the body of a streamed reply: events to pieces, and whether it came to its end."""

from __future__ import annotations

from collections.abc import Iterator

from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.calls import CallCollector
from taskweaver.llm.parsing.sse import EventReader, NotAnEventStream
from taskweaver.llm.parsing.thinking import ThinkingSplitter
from taskweaver.llm.parsing.wire import StreamEvent, read_event
from taskweaver.llm.surrogates import SurrogateJoiner
from taskweaver.llm.transport.failures import failure, stream_failure
from taskweaver.llm.types import Chunk, FinishReason, Usage

MAX_TEXT_CHARS = 2 << 20
"""Longest reply that is accepted; longer ones come from a model that repeats itself."""

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
        self._thinking = ThinkingSplitter()
        self._calls = CallCollector()

    def feed(self, block: bytes) -> list[Chunk]:
        """Read a block of the body; return the pieces that are new.

        Raises:
            ModelError: If it is not part of a reply, or the server reports an error.
        """
        return self._take(self._reader.feed(block))

    def end(self) -> list[Chunk]:
        """Read the remainder at the end of the body; return its new pieces.

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
        text, reasoning = self._thinking.feed(self._joiner.finish())
        rest, more = self._thinking.finish()
        return Chunk(
            text + rest,
            self.finish,
            self.usage,
            self.answered_by,
            reasoning=reasoning + more,
            calls=self._calls.calls(),
        )

    def _take(self, events: Iterator[bytes]) -> list[Chunk]:
        """Return the pieces in some events; the texts of neighbours are joined."""
        pieces: list[Chunk] = []
        try:
            for data in events:
                pieces += self._add(data)
        except NotAnEventStream as error:
            raise self._not_a_stream(error.beginning) from error
        return list(_joined(pieces))

    def _add(self, data: bytes) -> list[Chunk]:
        self.events += 1
        if self.is_done or data == _DONE:
            self.is_done = True
            return []
        event = self._read(data)
        if event.error is not None:
            raise stream_failure(event.error, self._model)
        self.finish = self.finish or event.finish
        self.usage = event.usage or self.usage
        self.answered_by = event.model or self.answered_by
        self._refusal += event.refusal
        deltas = self._calls.add(event.calls)
        self.length += len(event.text) + len(event.refusal) + len(event.reasoning)
        self.length += sum(len(delta.text) for delta in deltas)
        if self.length > MAX_TEXT_CHARS:
            detail = f"the reply went on after {MAX_TEXT_CHARS:,} characters and was given up."
            raise failure("malformed", detail, self._model, hint="")
        text, reasoning = self._thinking.feed(self._joiner.feed(event.text))
        reasoning += event.reasoning
        said = [Chunk(text, reasoning=reasoning)] if text or reasoning else []
        return said + [Chunk(call=delta) for delta in deltas]

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


def _joined(pieces: list[Chunk]) -> Iterator[Chunk]:
    """Yield pieces, those of text alone that follow each other as one."""
    texts: list[str] = []
    for piece in pieces:
        if piece.text and not piece.reasoning and piece.call is None:
            texts.append(piece.text)
            continue
        if texts:
            yield Chunk("".join(texts))
            texts.clear()
        yield piece
    if texts:
        yield Chunk("".join(texts))
