"""Extraction of the JSON object in a model's text, and repair of the mistakes models make in it.

A reply may carry prose, a code fence or hidden reasoning around the object, raw line breaks and
stray backslashes inside its strings, trailing commas, or be a Python dictionary. Content is never
guessed: unreadable text is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jiter

from taskweaver.llm.parsing.notation import mended
from taskweaver.utils.markup.json_flaws import place_and_remedy, without_trailing_commas
from taskweaver.utils.parsing import literal_value

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
_MAX_LITERAL_CHARS = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """Result of reading an object.

    Attributes:
        value: The object, or its readable part.
        problem: The flaw of the text, as a sentence; None when the object is whole.
    """

    value: dict[str, Any]
    problem: str | None = None


def find_start(text: str, begin: int = 0) -> int | None:
    """Return where the first JSON object after `begin` starts, or None if none has begun.

    Hidden reasoning at the beginning of a reply (``<think>...</think>``) is passed over.
    """
    if begin == 0 and _UNFINISHED_THOUGHT.match(text):
        thought = _THOUGHT.match(text)
        if thought is None:
            return None
        begin = thought.end()
    match = _OBJECT_START.search(text, begin)
    return match.start() if match else None


def repair(text: str) -> str:
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


def read_partial(text: str) -> dict[str, Any] | None:
    """Read the beginning of an object, an unfinished last string included.

    Returns:
        The members so far, or None when the text cannot be JSON however it goes on.
    """
    for candidate in (str, repair):
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
    others = (other for other in map(_read, mended(text)) if other.problem is None)
    return next(others, found)


def _read(text: str) -> Found:
    if not text.strip():
        return Found({}, "The reply is empty.")
    start = find_start(text)
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
    """Yield the JSON objects in a text, the outer ones."""
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
    first: Found | None = None
    for begin in islice(_starts(text, start), _MAX_STARTS):
        found = _read_at(text, begin)
        if found.value:
            return found
        first = first or found
    return first or Found({}, _NO_MEMBERS)


def _starts(text: str, start: int | None) -> Iterator[int]:
    while start is not None:
        yield start
        start = find_start(text, start + 1)


def _read_at(text: str, start: int) -> Found:
    source = text[start:]
    try:
        return _decode(source)
    except json.JSONDecodeError:
        source = repair(source)
        try:
            return _decode(source)
        except json.JSONDecodeError as error:
            return _read_broken(source, error)


def _decode(text: str) -> Found:
    """Decode the object `text` starts with; the text after it is ignored."""
    twice: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key, member in pairs:
            if built.setdefault(key, member) != member:
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
    if start < 0 or not start < end <= start + _MAX_LITERAL_CHARS:
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
        value = read_partial(text) or {}
        return Found(value, "The reply breaks off before its JSON object is complete.")
    problem = f"The JSON is malformed {place_and_remedy(error)}."
    return Found(read_partial(text[: error.pos]) or {}, problem)
