"""The one parser of JSON in a model's text, tolerant, for whole texts and texts that arrive.

A reply may carry prose, a code fence or hidden reasoning around the object, raw line breaks and
stray backslashes inside its strings, trailing commas, or be a Python dictionary. Slips in its
notation that leave no doubt about the content are corrected. Content is never guessed: unreadable
text is reported.

A structured reply is an object whose members are texts, under ``response`` or at the root.
`ReplyStream` reports new text of each member while the reply arrives, limited to a display's rate;
`parse_reply` reads a whole one.
"""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jiter

from taskweaver.utils.markup.json_flaws import place_and_remedy, without_trailing_commas
from taskweaver.utils.parsing import json_value, literal_value
from taskweaver.utils.surrogates import SurrogateJoiner, repair

_OBJECT_START = re.compile(r"\{\s*[\"}]")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_FLAW = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<open>\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z)"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|(?P<good>\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}|(?:u[0-9a-fA-F]{0,3})?\Z))"
    r"|(?P<stray>\\)"
    r"|(?P<control>[\x00-\x1f])"
)
_STRAY_IN_PYTHON = re.compile(r"\\(?P<known>[\\'\"abfnrtvxuUN0-7\n])|\\")
_UNFINISHED_THOUGHT = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_BREAKS_OFF = re.compile(r"\\?u?[0-9a-fA-F]{0,4}\Z|[-a-z]{0,5}\s*\Z")
_NO_MEMBERS = "The JSON object of the reply has no members."
_MAX_STARTS = 8
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "number": (int, float),
    "integer": (int,),
}
_MOST_CHARS = 1 << 20
_ENTITY_START = re.compile(r"\{\s*&(?:quot|#34|#x22);")
_TYPOGRAPHIC_START = re.compile("\\{\\s*[\u201c\u201d\u201e\u201f]")
_TYPOGRAPHIC = re.compile("[\u201c\u201d\u201e\u201f]")
_TRIPLE = re.compile(r'(?<=[:\[,{])(\s*)"""(.*?)"""(?=\s*[,}\]])', re.DOTALL)
_PARTS = re.compile(
    r'(?P<string>"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|(?P<comment>//[^\n]*+|/\*.*?\*/)|[{}\[\]]',
    re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]"}
FRAME_S = 1 / 30
"""Faster updates are not visible."""

_CHEAP, _DEAR = 20, 4
"""Times as long as parsing took that parsing again waits: within a frame, and beyond it."""

_ENVELOPE = "response"


@dataclass(frozen=True, slots=True)
class Found:
    """Result of reading an object.

    Attributes:
        value: The object, or its readable part.
        problem: The flaw of the text, as a sentence; None when the object is whole.
    """

    value: dict[str, Any]
    problem: str | None = None


def _find_start(text: str, begin: int = 0) -> int | None:
    """Return where the first JSON object after `begin` starts, or None if no object has begun.

    Hidden reasoning at the beginning of a reply (``<think>...</think>``) is passed over.
    """
    if begin == 0 and _UNFINISHED_THOUGHT.match(text):
        thought = _THOUGHT.match(text)
        if thought is None:
            return None
        begin = thought.end()
    match = _OBJECT_START.search(text, begin)
    return match.start() if match else None


def _repair(text: str) -> str:
    """Return JSON with raw control characters and stray backslashes in strings escaped.

    Lone halves of escaped surrogate pairs become U+FFFD, and commas before a closing bracket are
    left out. Linear in the length of `text`.
    """
    return without_trailing_commas(
        _STRING.sub(lambda found: _FLAW.sub(_repair_flaw, found[0]), text)
    )


def _repair_flaw(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "half":
            return "\\ufffd"
        case "stray":
            return "\\\\"
        case "control":
            return json.dumps(match[0])[1:-1]
        case _:
            return match[0]


def _read_partial(text: str) -> dict[str, Any] | None:
    """Read the beginning of an object, an unfinished last string included.

    Returns:
        The members so far, or None when the text cannot be JSON however it goes on.
    """
    for candidate in (str, _repair):
        try:
            data = candidate(text).encode("utf-8", "replace")
            value = jiter.from_json(data, partial_mode="trailing-strings", cache_mode="keys")
        except ValueError:
            continue
        return value if isinstance(value, dict) else None
    return None


def read_object(text: str) -> Found:
    """Read the object in a reply: as JSON, as JSON that breaks off, or as a Python dictionary.

    Where it cannot be read, slips in its notation are corrected first.
    """
    found = _read(text)
    if found.problem is None:
        return found
    others = (other for other in map(_read, _mended(text)) if other.problem is None)
    return next(others, found)


def _mended(text: str) -> Iterator[str]:
    """Yield a text again after each kind of slip in it was corrected; nothing if it has none."""
    if len(text) > _MOST_CHARS:
        return
    if '"' not in text and _ENTITY_START.search(text):
        yield (text := html.unescape(text))
    if '"' not in text and _TYPOGRAPHIC_START.search(text):
        yield (text := _TYPOGRAPHIC.sub('"', text))
    if _TRIPLE.search(text):  # a backslash in such a text is one of the text
        text = _TRIPLE.sub(lambda match: match[1] + json.dumps(match[2], ensure_ascii=False), text)
        yield text
    start = text.find("{")
    bare = _PARTS.sub(lambda match: "" if match["comment"] else match[0], text[max(start, 0) :])
    if start >= 0 and bare != text[start:]:
        yield text[:start] + bare


def _read(text: str) -> Found:
    if not text.strip():
        return Found({}, "The reply is empty.")
    start = _find_start(text)
    if start is None or "{" in text[:start]:
        literal = _read_python(text)
        if literal is not None:
            return Found(literal)
    if start is None:
        return Found({}, "The reply holds no JSON object.")
    return _read_json(text, start)


def required_object(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object in a reply, with all that a schema requires, of the right types.

    Of several objects it is the first that has the required fields.

    Raises:
        ValueError: If there is none, or a field is missing or of another type.
    """
    found = read_object(text)
    wanted = list(schema.get("required", ()))
    value, problem = found.value, found.problem
    if any(name not in value for name in wanted):
        others = (other for other in _objects(text) if all(name in other for name in wanted))
        value = next(others, value)
        problem = problem if value is found.value else None
    missing = [name for name in wanted if name not in value]
    if problem is None and missing:
        has = f"; it has {', '.join(f'`{name}`' for name in value)}" if value else ""
        problem = f"{', '.join(f'`{name}`' for name in missing)} missing{has}"
    if problem is not None:
        raise ValueError(problem)
    for name in wanted:
        kind = schema["properties"][name].get("type", "")
        if kind in _TYPES and not isinstance(value[name], _TYPES[kind]):
            raise ValueError(f"`{name}` must be of type {kind}")
    return value


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in a text."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
        else:
            yield value


def _read_json(text: str, start: int) -> Found:
    # A later start counts only when nothing at all can be read from an earlier one: it may
    # well lie inside the broken object.
    first = found = _read_at(text, start)
    for _ in range(_MAX_STARTS - 1):
        later = None if found.value else _find_start(text, start + 1)
        if later is None:
            break
        start, found = later, _read_at(text, later)
    return found if found.value else first


def _read_at(text: str, start: int) -> Found:
    source = text[start:]
    try:
        return _decode(source)
    except json.JSONDecodeError:
        source = _repair(source)
        try:
            return _decode(source)
        except json.JSONDecodeError as error:
            return _read_broken(source, error)


def _decode(text: str) -> Found:
    """Decode the object that `text` starts with, and ignore the text after the object."""
    twice: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key, member in pairs:
            first = built.setdefault(key, member)
            if first is not member and first != member:  # NaN differs from itself
                twice.append(key)
        return built

    try:
        value = json.JSONDecoder(strict=False, object_pairs_hook=build).raw_decode(text)[0]
    except RecursionError:
        return Found({}, "The JSON object is nested too deeply.")
    if twice:
        return Found(value, f"The field `{twice[0]}` is given twice; give each field once.")
    return Found(value, None if value else _NO_MEMBERS)


def _read_python(text: str) -> dict[str, Any] | None:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or not start < end <= start + _MOST_CHARS:
        return None
    source = _STRAY_IN_PYTHON.sub(
        lambda match: match[0] if match["known"] else "\\\\", text[start : end + 1]
    )
    try:
        value = literal_value(source)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def _read_broken(text: str, error: json.JSONDecodeError) -> Found:
    if _BREAKS_OFF.match(text, error.pos) or error.msg.startswith("Unterminated string"):
        value = _read_partial(text) or {}
        return Found(value, "The reply breaks off before its JSON object is complete.")
    problem = f"The JSON is malformed {place_and_remedy(error)}."
    return Found(_read_partial(text[: error.pos]) or {}, problem)


def closed(text: str) -> str:
    """Return an object that ends after a whole text with its brackets closed; else the text."""
    start = text.find("{")
    stripped = text.rstrip().removesuffix("```").rstrip()
    if start < 0 or not stripped.endswith(('"', "}", "]")):
        return text
    is_open, last_end = [], start
    for match in _PARTS.finditer(stripped, start):
        last_end = match.end()
        if match["string"]:
            if json_value(match[0]) is None:
                return text
        elif match[0] in _CLOSING:
            is_open.append(_CLOSING[match[0]])
        elif not is_open or is_open.pop() != match[0]:
            return text
    if not is_open or last_end != len(stripped):
        return text
    return stripped + "".join(reversed(is_open))


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
    """A reply, read to the end.

    Attributes:
        fields: The fields in their order; values that are not texts as their JSON, null as "".
        problem: One sentence a model can act on; None when an object was found whole.
        raw: The model's text, made encodable.
    """

    fields: dict[str, str]
    problem: str | None
    raw: str


def parse_reply(text: str) -> ParsedReply:
    """Read a whole reply, and never raise."""
    found = read_object(text)
    fields: dict[str, str] = {}
    for key, value, _ in _members(found.value):
        fields.setdefault(key, _as_text(value))
    return ParsedReply(fields, found.problem, repair(text))


class ReplyStream:
    """Reader of a reply that arrives.

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
        """Take the next piece, and return the new text of the fields.

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
        """End the reply, and return the rest of the fields, and the whole reply."""
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
            self._start = _find_start(self._text)
        if self._start is None:
            return
        value = _read_partial(self._text[self._start :])
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
