"""Reader of a streamed reply: events to chunks, and whether the reply is complete.

Reasoning that models write into their text is split from the text while it arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.call_pieces import CallCollector
from taskweaver.llm.parsing.stream import (
    NotAnEventStream,
    ReplyEvents,
    StreamEvent,
    UnreadableEvent,
    event_object,
)
from taskweaver.llm.transport.failures import failure, stream_failure
from taskweaver.llm.types import Chunk, FinishReason, Usage
from taskweaver.utils.surrogates import SurrogateJoiner

_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>")
_CLOSINGS = ("</think>", "</thinking>")
_LOOKED_BACK = 4096
_QUOTES = ("`", '"', "'", "\\")

MAX_TEXT_CHARS = 2 << 20
"""Longest reply that is accepted; longer ones come from a model that repeats itself."""


class ThinkingSplitter:
    """Splits ``<think>``, at the beginning of a text, from the reply.

    A ``</think>`` without a beginning ends reasoning as well: the template of some models writes
    the beginning into the prompt. The chunk of such an end says that all text before was reasoning.

    Attributes:
        lacks_opening: Whether reasoning ended that had no beginning.
    """

    def __init__(self, *, is_thinking: bool = False) -> None:
        """Begin a reply.

        Args:
            is_thinking: Whether it begins with reasoning, as earlier replies of the model did.
        """
        self.lacks_opening = False
        self._is_assumed = is_thinking
        self._is_thinking = is_thinking
        self._is_beginning = not is_thinking
        self._held = ""
        self._seen: list[str] = []
        self._mentions_tag = False
        self._strips = False

    def feed(self, text: str) -> Chunk:
        """Take the next piece, and return the part of the text that is certain."""
        return self._read(self._held + text, is_end=False)

    def finish(self) -> Chunk:
        """Return what was held back.

        Text that was taken for reasoning by assumption alone, and has no end, is the reply.
        """
        last = self._read(self._held, is_end=True)
        seen = "".join(self._seen)
        if self._is_assumed and not _OPEN.match(seen):
            return Chunk(seen)
        return last

    def _read(self, text: str, *, is_end: bool) -> Chunk:
        self._held = ""
        shown, thought, again = "", "", False
        while text:
            if self._is_beginning:
                match = _OPEN.match(text)
                if match is None and not is_end and _may_open(text):
                    self._held = text
                    break
                self._is_beginning = False
                if match is not None:
                    self._is_thinking, self._mentions_tag = True, True
                    text = text[match.end() :]
                elif self._strips:
                    text = text.lstrip()
                continue
            end = _CLOSE.search(text)
            if self._is_thinking:
                if end is None:
                    thought += self._keep(text, is_end=is_end)
                    break
                thought += text[: end.start()]
                self._end_of_thought()
                text = text[end.end() :]
                continue
            if end is None or self._mentions_tag or self._is_quoted(shown + text[: end.start()]):
                shown += self._keep(text, is_end=is_end or self._mentions_tag)
                break
            again = self.lacks_opening = True
            thought, shown = thought + shown + text[: end.start()], ""
            self._end_of_thought()
            text = text[end.end() :]
        self._remember(thought if self._is_assumed else shown)
        return Chunk(shown, reasoning=thought, begins_again=again)

    def _remember(self, text: str) -> None:
        if not text:
            return
        self._seen.append(text)
        if not self._is_assumed:
            self._seen[:] = ["".join(self._seen)[-_LOOKED_BACK:]]

    def _is_quoted(self, text: str) -> bool:
        before = ("".join(self._seen) + text)[-_LOOKED_BACK:]
        return before.endswith(_QUOTES) or any(tag in before.lower() for tag in _OPENINGS)

    def _end_of_thought(self) -> None:
        self.lacks_opening = self.lacks_opening or self._is_assumed
        self._is_thinking = self._is_assumed = False
        self._is_beginning = self._mentions_tag = self._strips = True

    def _keep(self, text: str, *, is_end: bool) -> str:
        """Return the text that cannot begin a closing tag, and hold the rest."""
        at = text.rfind("<")
        rest = text[at:].lower() if at >= 0 else ""
        if is_end or not rest or not any(tag.startswith(rest) for tag in _CLOSINGS):
            return text
        self._held = text[at:]
        return text[:at]


def _may_open(text: str) -> bool:
    rest = text.lstrip().lower()
    return any(tag.startswith(rest) for tag in _OPENINGS)


class ReplyReader:
    """One reply, block by block.

    Attributes:
        events: Number of events read.
        length: Characters written so far.
        finish: Reason the reply ended; None before its end.
        usage: Consumption of the call, once the server reported it.
        is_done: Whether the server announced the end.
        has_begun: Whether a part of the reply came; reasoning is none.
        paused: The parts so far, when the server goes on once it has them back.
        answered_by: Name of the model that answers, once the server named it.
    """

    def __init__(
        self,
        model: str,
        source: ReplyEvents,
        seed: str = "",
        *,
        origin: str = "",
        is_thinking: bool = False,
    ) -> None:
        """Begin a reply.

        Args:
            model: Name of the model that is asked.
            source: Reads the body.
            seed: Text that ids of calls are derived from where the server gives none.
            origin: Dialect, address and model, for the reply's record.
            is_thinking: Whether the text begins with reasoning.
        """
        self.events = 0
        self.length = 0
        self.finish: FinishReason | None = None
        self.usage: Usage | None = None
        self.is_done = False
        self.has_begun = False
        self.paused: Sequence[Mapping[str, Any]] = ()
        self.answered_by = ""
        self._model = model
        self._refusal = ""
        self._source = source
        self._origin = origin
        self._is_broken = False
        self._is_over = False
        self._spent: Usage | None = None
        self._joiner = SurrogateJoiner()
        self._thoughts = SurrogateJoiner()
        self._splitter = ThinkingSplitter(is_thinking=is_thinking)
        self._calls = CallCollector(seed)

    @property
    def lacks_opening(self) -> bool:
        """Whether reasoning in the text ended that had no beginning."""
        return self._splitter.lacks_opening

    def feed(self, block: bytes) -> list[Chunk]:
        """Read a block of the body, and return the new chunks.

        Raises:
            ModelError: If it is not part of a reply, or the server reports an error.
        """
        return self._take(self._source.feed(block))

    def end(self) -> list[Chunk]:
        """Read the remainder at the end of the body, and return the new chunks.

        Raises:
            ModelError: As `feed`.
        """
        return self._take(self._source.finish())

    def resume(self) -> None:
        """Go on with a further body, which continues a reply that was paused."""
        self._spent = self._usage()
        self.usage, self.paused, self.is_done = None, (), False

    def last(self) -> Chunk:
        """Return the chunk that ends the reply.

        Raises:
            ModelError: Of kind ``refusal`` or ``truncated``.
        """
        if self._refusal:
            raise failure("refusal", self._refusal, self._model)
        if self.finish is None:
            why = "by a failure of the server" if self._is_broken else "too early"
            detail = f"the reply ended {why}, before it was complete."
            raise failure("truncated", detail, self._model, hint="Try again.")
        calls, finish = self._calls.finish(), self.finish
        if finish in {"stop", "tool_calls"}:  # servers confuse the two
            finish = "tool_calls" if calls else "stop"
        split = self._splitter.feed(self._joiner.finish())
        rest = self._splitter.finish()
        items = self._source.items
        record = {
            "origin": self._origin,
            "ids": [call.id for call in calls],
            "items": [dict(item) for item in items],
        }
        return Chunk(
            split.text + rest.text,
            finish,
            self._usage(),
            self.answered_by,
            self._thoughts.finish() + split.reasoning + rest.reasoning,
            calls=calls,
            record=record if items else {},
            begins_again=split.begins_again or rest.begins_again,
        )

    def _usage(self) -> Usage | None:
        """Return the consumption of all bodies."""
        counted = [usage for usage in (self._spent, self.usage) if usage is not None]
        return sum(counted, Usage()) if counted else None

    def _take(self, events: Iterator[StreamEvent]) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            for event in events:
                self._add(event, chunks)
        except UnreadableEvent as error:
            shown = error.data[:300].decode("utf-8", "replace")
            detail = f"an event of the reply cannot be read: {shown}"
            raise failure("malformed", detail, self._model) from error
        except NotAnEventStream as error:
            raise self._not_a_stream(str(error)) from error
        return chunks

    def _add(self, event: StreamEvent, chunks: list[Chunk]) -> None:
        self.events += 1
        if self.is_done or event.is_done:
            self.is_done = True
            return
        if event.error is not None:
            written = failed_generation(event.error)
            if not written:
                raise stream_failure(event.error, self._model)
            # The server read the model's text as a broken call: the text is the reply.
            self._calls.clear()
            event = StreamEvent(written, finish="stop")
        if self._is_over:
            event = replace(event, text="", reasoning="")
        # Some servers give each piece of the text a reason for the end.
        self._is_over |= event.finish is not None and not (event.text or event.reasoning)
        self.finish = self.finish or event.finish
        self._is_broken = self._is_broken or event.is_broken
        self.usage = event.usage or self.usage
        self.paused = event.paused or self.paused
        self.answered_by = event.model or self.answered_by
        self._refusal += event.refusal
        self.has_begun |= bool(event.text or event.refusal or event.calls)
        self._measure(event)
        thought = self._thoughts.feed(event.reasoning)
        split = self._splitter.feed(self._joiner.feed(event.text)) if event.text else Chunk()
        _append(chunks, split, thought + split.reasoning)
        deltas = [self._calls.add(piece) for piece in event.calls]
        chunks += [Chunk(call=delta) for delta in deltas if delta is not None]

    def _measure(self, event: StreamEvent) -> None:
        """Bound the reply: text, reasoning and arguments together."""
        self.length += len(event.text) + len(event.refusal) + len(event.reasoning)
        self.length += sum(len(piece.text) + len(piece.name) for piece in event.calls)
        self.length += sum(len(str(piece.extra)) for piece in event.calls if piece.extra)
        parts = [part for part in event.returned.values() if not isinstance(part, str)]
        self.length += len(str(parts)) if parts else 0
        if self.length > MAX_TEXT_CHARS:
            detail = f"the reply went on after {MAX_TEXT_CHARS:,} characters and was given up."
            raise failure("malformed", detail, self._model, hint="")

    def _not_a_stream(self, beginning: str) -> ModelError:
        try:
            error = event_object(beginning.encode("utf-8", "replace")).get("error")
        except UnreadableEvent:
            error = None
        if error:
            return stream_failure(error, self._model)
        shown = " ".join(beginning[:300].split()) or "nothing"
        return failure("malformed", f"the server sent no event stream but: {shown}", self._model)


def failed_generation(error: object) -> str:
    """Return the text of a model that the server read as a broken call, or an empty text."""
    if not isinstance(error, Mapping) or error.get("code") != "tool_use_failed":
        return ""
    written = error.get("failed_generation")
    return written if isinstance(written, str) else ""


def _append(chunks: list[Chunk], split: Chunk, reasoning: str) -> None:
    """Add a piece of text to the chunks of a block, joined with a piece directly before."""
    if not (split.text or reasoning or split.begins_again):
        return
    last = chunks[-1] if chunks else None
    if last is None or last.call is not None or split.begins_again:
        chunks.append(replace(split, reasoning=reasoning))
        return
    chunks[-1] = replace(last, text=last.text + split.text, reasoning=last.reasoning + reasoning)
