"""Tool calls of a streamed reply, collected from their pieces.

One rule holds for every endpoint: a piece belongs to the call with its index, unless it brings
another id, or a name although that call's arguments are complete; without an index, a new id or a
name opens a call, and anything else goes on with the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from taskweaver.llm.types import CallDelta, ToolCall

MOST_CALLS = 200
"""Most calls of a reply that are read."""


@dataclass(slots=True)
class _Open:
    """A call that is being collected."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether its arguments are a whole JSON value."""
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return True


class CallCollector:
    """The calls of one reply."""

    def __init__(self) -> None:
        self._calls: list[_Open] = []

    def add(self, pieces: object) -> list[CallDelta]:
        """Take the pieces of an event; return the new text of the arguments, call by call."""
        read = (self._take(piece) for piece in _mappings(pieces))
        return [delta for delta in read if delta is not None]

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls, each with an id and arguments that are not empty."""
        return tuple(
            ToolCall(call.id or _made_id(number, call), call.name, _unwrapped(call), call.extra)
            for number, call in enumerate(self._calls)
        )

    def _take(self, piece: Mapping[str, Any]) -> CallDelta | None:
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        id_ = piece.get("id")
        id_ = id_ if isinstance(id_, str) and id_ not in ("", "null") else ""
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        call = self._call_of(piece.get("index"), id_, name)
        if call is None:
            return None
        call.id = call.id or id_
        call.name = call.name or name
        call.extra |= {
            key: value for key, value in piece.items() if key not in _USUAL and value is not None
        }
        text = _text(function.get("arguments"))
        if call.is_complete and text == call.arguments and text:
            return None  # the whole call once more, in the last event
        call.arguments += text
        return CallDelta(self._calls.index(call), call.name, text)

    def _call_of(self, index: object, id_: str, name: str) -> _Open | None:
        """Return the call a piece belongs to; None if there are too many."""
        number = index if isinstance(index, int) and not isinstance(index, bool) else None
        known = self._known(number, id_)
        if known is not None and not _opens_another(known, id_, name):
            return known
        if number is None and known is None and self._calls and not id_ and not name:
            return self._calls[-1]
        if len(self._calls) >= MOST_CALLS:
            return None
        opened = _Open(number)
        self._calls.append(opened)
        return opened

    def _known(self, number: int | None, id_: str) -> _Open | None:
        with_id = [call for call in self._calls if id_ and call.id == id_]
        if with_id:
            return with_id[-1]
        same = [call for call in self._calls if number is not None and call.index == number]
        return same[-1] if same else None


_USUAL = {"index", "id", "type", "function"}


def _opens_another(call: _Open, id_: str, name: str) -> bool:
    is_other = bool(id_ and call.id and id_ != call.id)
    is_named_again = bool(name and call.name and not id_ and call.is_complete)
    return is_other or is_named_again


def _mappings(pieces: object) -> Iterable[Mapping[str, Any]]:
    found = pieces if isinstance(pieces, list) else []
    return (piece for piece in found if isinstance(piece, Mapping))


def _text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _unwrapped(call: _Open) -> str:
    """Return the arguments of a call: JSON inside of a JSON text is taken out, none is `{}`."""
    text = call.arguments.strip()
    if text.startswith('"'):
        try:
            inner = json.loads(text)
        except ValueError:
            inner = text
        text = inner if isinstance(inner, str) and inner.lstrip().startswith("{") else text
    return text or "{}"


def _made_id(number: int, call: _Open) -> str:
    """Return an id of nine letters and digits, which every endpoint takes."""
    return blake2b(f"{number}{call.name}{call.arguments}".encode(), digest_size=5).hexdigest()[:9]
