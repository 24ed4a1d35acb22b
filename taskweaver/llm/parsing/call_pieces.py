"""Tool calls in a streamed reply: pieces, as sent by endpoints, collected to whole calls.

Endpoints differ in indexes, ids and the form of arguments; one rule reads them all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskweaver.llm.parsing.json_text import read_object
from taskweaver.llm.types import CallDelta, ChatMessage, ToolCall
from taskweaver.utils.surrogates import SurrogateJoiner, repair

MAX_CALLS = 200
"""Most calls of a reply that are read."""

_ID_CHARS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 9  # Mistral's endpoints take no other, and all take this one
_NO_ID = frozenset({"", "null", "None"})
_OWN = frozenset({"index", "id", "type", "function"})


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call, as received.

    Attributes:
        index: The place that the endpoint gives it; None without one.
        id: Id of the call; empty without one.
        name: Name of the tool, or more of it.
        text: More of the arguments.
        extra: Data of the provider that goes back with the call.
    """

    index: int | None
    id: str
    name: str
    text: str
    extra: Mapping[str, Any]


def read_pieces(delta: Mapping[str, Any]) -> tuple[CallPiece, ...]:
    """Return the pieces of calls in a delta or a message."""
    listed = delta.get("tool_calls")
    if isinstance(listed, dict):
        listed = [listed]
    if not isinstance(listed, list):
        old = delta.get("function_call")  # the older form of one call
        listed = [{"index": 0, "function": old}] if isinstance(old, dict) else []
    return tuple(_piece(item) for item in listed if isinstance(item, dict))


def _piece(item: dict[str, Any]) -> CallPiece:
    function = item.get("function")
    function = function if isinstance(function, dict) else {}
    index, name = item.get("index"), function.get("name")
    call_id, arguments = item.get("id"), function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return CallPiece(
        index if isinstance(index, int) and not isinstance(index, bool) else None,
        call_id if isinstance(call_id, str) and call_id not in _NO_ID else "",
        name if isinstance(name, str) else "",
        arguments or "",
        {key: value for key, value in item.items() if key not in _OWN and value is not None},
    )


@dataclass(slots=True)
class _OpenCall:
    position: int
    id: str = ""
    name: str = ""
    texts: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)

    @property
    def text(self) -> str:
        """The arguments so far."""
        self.texts[:] = ["".join(self.texts)]
        return self.texts[0]

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are complete."""
        return (
            bool(self.texts) and self.texts[-1].rstrip()[-1:] in ("}", "") and is_object(self.text)
        )

    def add(self, piece: CallPiece) -> str:
        """Add a piece, and return the new text of the arguments."""
        self.id = self.id or piece.id
        if piece.name != self.name and not any(self.texts):
            self.name += piece.name
        self.extra |= piece.extra
        if self._repeats(piece):
            self.texts[:] = [piece.text]
            return ""
        new = self.joiner.feed(piece.text)
        if new:
            self.texts.append(new)
        return new

    def _repeats(self, piece: CallPiece) -> bool:
        if not piece.id or piece.id != self.id or not is_object(piece.text):
            return False
        return self.is_whole or (len(self.text) > 1 and piece.text.startswith(self.text))


class CallCollector:
    """The calls of one reply."""

    def __init__(self, seed: str = "") -> None:
        """Begin without calls.

        Args:
            seed: Text that ids are derived from where the endpoint gives none.
        """
        self._seed = seed
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}
        self._last: _OpenCall | None = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    def clear(self) -> None:
        """Forget all calls."""
        self._calls.clear()

    def add(self, piece: CallPiece) -> CallDelta | None:
        """Take a piece; return it as it belongs to its call, None if it is not read."""
        call = self._find(piece)
        if call is None:
            call = _OpenCall(len(self._calls))
            if len(self._calls) < MAX_CALLS:
                self._calls.append(call)
        if piece.index is not None:
            self._by_index[piece.index] = call
        if piece.id:
            self._by_id.setdefault(piece.id, call)
        self._last = call
        if call.position >= MAX_CALLS:  # kept apart, so that it mixes with no other
            return None
        new = call.add(piece)
        return CallDelta(call.position, call.name, new)

    def finish(self) -> tuple[ToolCall, ...]:
        """Return the whole calls, in order, each with an id of the call's own."""
        used: set[str] = set()
        found = []
        for call in self._calls:
            text = call.text + call.joiner.finish()
            call_id = call.id
            if not call_id or call_id in used:
                call_id = made_id(self._seed, call.position)
            used.add(call_id)
            found.append(ToolCall(call_id, call.name.strip(), as_json(text), call.extra))
        return tuple(found)

    def _find(self, piece: CallPiece) -> _OpenCall | None:
        """Return the call that a piece belongs to, or None if the piece opens a call."""
        known = self._by_id.get(piece.id) if piece.id else None
        if piece.index is None:
            return known if piece.id else None if piece.name else self._last
        call = self._by_index.get(piece.index)
        if call is None:
            if known is None or known.name != piece.name or not known.is_whole:
                return None
            return known if is_object(piece.text) else None
        if piece.id and call.id and piece.id != call.id:
            return known
        if piece.name and call.is_whole and not (piece.id and piece.id == call.id):
            return None
        return call


def is_object(text: str) -> bool:
    """Return whether a text is a JSON object."""
    if not (text.lstrip().startswith("{") and text.rstrip().endswith("}")):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def as_json(text: str) -> str:
    """Return arguments as the text of a JSON object, if the arguments can be read as one.

    No arguments are an empty object; JSON inside JSON is taken out; raw line breaks and other
    slips are repaired. Other text stays as it is.
    """
    if not text.strip():
        return "{}"
    try:
        value = json.loads(text, strict=False)
        for _ in range(3):
            if not isinstance(value, str):
                break
            value = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return _mended(text)
    if value is None:
        return "{}"
    if not isinstance(value, dict) or is_object(text):
        return text
    return repair(json.dumps(value, ensure_ascii=False))


def _mended(text: str) -> str:
    if not text.lstrip().startswith("{"):
        return text
    try:
        found = read_object(text)
        is_whole = found.problem is None and bool(found.value)
        return repair(json.dumps(found.value, ensure_ascii=False)) if is_whole else text
    except (ValueError, TypeError, RecursionError):
        return text


def made_id(seed: str, position: int) -> str:
    """Return an id for a call without one: nine letters and digits, the same for the same seed."""
    digest = hashlib.sha256(f"{seed}\n{position}".encode("utf-8", "replace")).digest()
    return "".join(_ID_CHARS[byte % len(_ID_CHARS)] for byte in digest[:_ID_LENGTH])


def id_seed(messages: Sequence[ChatMessage]) -> str:
    """Return the text that ids of calls in the reply to `messages` are derived from."""
    last = messages[-1] if messages else None
    return f"{len(messages)}\n{json.dumps(last, sort_keys=True, default=str)}"
