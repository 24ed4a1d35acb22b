"""The one parser of structured replies: tolerant, incremental, limited to a display's rate.

A reply is a JSON object whose members are texts, under ``response`` or at the root. `ReplyStream`
reports new text of each member while the reply arrives; `parse_reply` reads a whole one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.llm.parsing.json_text import find_start, read_object, read_partial
from taskweaver.llm.surrogates import SurrogateJoiner, repair

FRAME_S = 1 / 30
"""Nobody sees updates that come faster than this."""

_CHEAP, _DEAR = 20, 4
"""Times as long as parsing took that parsing again waits: within a frame, and beyond it."""

_ENVELOPE = "response"


@dataclass(frozen=True, slots=True)
class FieldDelta:
    """New text of one field of a reply.

    Attributes:
        key: Name of the field.
        text: The new text; may be empty.
        is_end: Whether the field is complete.
    """

    key: str
    text: str
    is_end: bool


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply that has been read to its end.

    Attributes:
        fields: The fields in their order; values that are not texts as their JSON, null as "".
        problem: One sentence a model can act on; None when an object was found whole.
        raw: The model's text, made encodable.
    """

    fields: dict[str, str]
    problem: str | None
    raw: str


def parse_reply(text: str) -> ParsedReply:
    """Read a whole reply; never raises."""
    found = read_object(text)
    fields: dict[str, str] = {}
    for key, value, _ in _members(found.value):
        fields.setdefault(key, _as_text(value))
    return ParsedReply(fields, found.problem, repair(text))


class ReplyStream:
    """Reads a reply while it arrives.

    The deltas of a field, joined, are the field's text in the `ParsedReply` if that has no
    `problem`; of a field that is given twice, for instance, either text may have been shown.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._joiner = SurrogateJoiner()
        self._text = ""
        self._start: int | None = None
        self._shown: dict[str, str] = {}
        self._ended: set[str] = set()
        self._next_look = 0.0

    def feed(self, text: str) -> list[FieldDelta]:
        """Take the next piece; return the new text of the fields.

        Parses about 30 times a second at most, so many calls return nothing.
        """
        self._pieces.append(self._joiner.feed(text))
        now = time.monotonic()
        if now < self._next_look:
            return []
        deltas = list(self._look())
        cost = time.monotonic() - now
        self._next_look = now + cost + max(_DEAR * cost, min(FRAME_S, _CHEAP * cost))
        return deltas

    def finish(self) -> tuple[list[FieldDelta], ParsedReply]:
        """End the reply; return the rest of its fields, and the whole."""
        self._pieces.append(self._joiner.finish())
        self._join()
        reply = parse_reply(self._text)
        deltas = [
            delta
            for key, text in reply.fields.items()
            for delta in self._show(key, text, is_end=True)
        ]
        unended = [key for key in self._shown if key not in self._ended]
        deltas += [FieldDelta(key, "", is_end=True) for key in unended]
        return deltas, reply

    def _join(self) -> None:
        self._text += "".join(self._pieces)
        self._pieces.clear()

    def _look(self) -> Iterator[FieldDelta]:
        self._join()
        if self._start is None:
            self._start = find_start(self._text)
        if self._start is None:
            return
        value = read_partial(self._text[self._start :])
        for key, member, is_complete in _members(value or {}):
            if is_complete or isinstance(member, str):
                yield from self._show(key, _as_text(member), is_end=is_complete)

    def _show(self, key: str, text: str, *, is_end: bool) -> Iterator[FieldDelta]:
        shown = self._shown.get(key)
        if key in self._ended or (shown is not None and not text.startswith(shown)):
            return
        new = text[len(shown or "") :]
        if new or is_end or shown is None:
            self._shown[key] = text
            if is_end:
                self._ended.add(key)
            yield FieldDelta(key, new, is_end)


def _members(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield key, value and whether something follows it, those under the envelope in its place."""
    last = next(reversed(value), None) if value else None
    for key, member in value.items():
        is_complete = key != last
        if key == _ENVELOPE and isinstance(member, Mapping):
            for inner, text, is_inner_complete in _members(member):
                yield inner, text, is_complete or is_inner_complete
        else:
            yield str(key), member, is_complete


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return repair(value)
    if value is None:
        return ""
    return repair(json.dumps(value, ensure_ascii=False, default=str))
