"""Finds the ``<memory_update>`` block in a model's reply.

A block is one JSON object between its tags, before or after the rest of the reply. Tags inside a
JSON string or inside a fenced file are the reply's own content and are never touched.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from taskweaver.memory.branched.errors import (
    BranchedMemoryError,
    ForbiddenMemoryUpdateError,
    MalformedMemoryUpdateError,
    MissingMemoryUpdateError,
)
from taskweaver.utils.markup.json_flaws import place_and_remedy, without_trailing_commas
from taskweaver.utils.text import unfenced

_OPEN = re.compile(
    r"^[ \t]*<memory_update\b[^>{]*>|<memory_update\b[^>{]*>(?=\s*(?:[{\[`]|<\\?/))",
    re.IGNORECASE | re.MULTILINE,
)
"""An opening tag begins a line, or an object follows it; elsewhere the word is only mentioned."""

_UNFINISHED = re.compile(
    r"^[ \t]*<memory_update\b(?![^\n]*>)|<memory_update\b(?:\s*[\"\[{]|[^<>{\n]*\{)"
    r"|(?<=\})\s*<\\?/memory_update\s*>",
    re.IGNORECASE | re.MULTILINE,
)
"""A tag that does not end before its object begins, or a closing tag after an object alone."""

_CLOSE = re.compile(r"<\\?/memory_update\s*>", re.IGNORECASE)
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_EXAMPLE = "<memory_update>{}</memory_update>"
Presence = Literal["required", "optional", "forbidden"]


@dataclass(frozen=True, slots=True)
class MemoryReply:
    """A reply, taken apart: the content of the block, if any, and the rest."""

    updates: dict[str, Any] | None
    body: str


def read_reply(text: str, presence: Presence = "optional") -> MemoryReply:
    """Take a reply apart, which must, may or must not have a block.

    Raises:
        BranchedMemoryError: If the reply is no text: its function is broken, not the model.
        MissingMemoryUpdateError: If a required block is not there.
        MalformedMemoryUpdateError: If it is not closed, or not one JSON object, or there are two.
        ForbiddenMemoryUpdateError: If there is one where none may be.
    """
    if not isinstance(text, str):
        raise BranchedMemoryError(f"A reply of a model must be a text, not {type(text).__name__}.")
    opening = _first(_OPEN, text, 0)
    closing = None if opening is None else _CLOSE.search(text, opening.end())
    unfinished = _unfinished(text, opening, closing)
    if opening is None and not unfinished:
        if presence == "required":
            hint = " One in a fence or in a JSON string is not read." if _OPEN.search(text) else ""
            raise MissingMemoryUpdateError(
                f"The reply has no <memory_update> block.{hint} Begin with one; {_EXAMPLE} is"
                " allowed."
            )
        return MemoryReply(None, text)
    if presence == "forbidden":
        raise ForbiddenMemoryUpdateError("A <memory_update> block may not stand in this reply.")
    if closing is not None and _first(_OPEN, text, closing.end()) is not None:
        raise MalformedMemoryUpdateError(
            "There are two <memory_update> blocks. Write one, with all operations in it."
        )
    if unfinished:
        raise MalformedMemoryUpdateError(
            f"A tag of the <memory_update> block is not complete. Write {_EXAMPLE}, with the JSON"
            " object between the tags."
        )
    if opening is None or closing is None:
        raise MalformedMemoryUpdateError(
            "The <memory_update> block is not closed: end it with </memory_update>."
        )
    start, end = opening.start(), closing.end()
    fences = (match.span() for match in _FENCED.finditer(text))
    # A fence around the block goes with it.
    start, end = next((span for span in fences if span[0] < start and end < span[1]), (start, end))
    body = f"{text[:start].rstrip()}\n{text[end:].lstrip()}".strip()
    return MemoryReply(_updates(text[opening.end() : closing.start()]), body)


def _first(pattern: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    """Find the first match that is not part of the reply's own content."""
    matches = list(pattern.finditer(text, start))
    content = [*_json_spans(text), *_file_spans(text)] if matches else []
    for match in matches:
        if not any(begin < match.start() < end for begin, end in content):
            return match
    return None


def _unfinished(text: str, opening: re.Match[str] | None, closing: re.Match[str] | None) -> bool:
    """Return whether a tag outside the block is not complete."""
    if opening is None:
        return _first(_UNFINISHED, text, 0) is not None
    before = _first(_UNFINISHED, text[: opening.start()], 0)
    after = None if closing is None else _first(_UNFINISHED, text, closing.end())
    return before is not None or after is not None


def _json_spans(text: str) -> list[tuple[int, int]]:
    """Return where JSON objects stand that begin a line."""
    spans: list[tuple[int, int]] = []
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r"^[ \t]*(?=[{\[])", text, re.MULTILINE):
        if spans and match.end() < spans[-1][1]:
            continue
        try:
            _, end = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        spans.append((match.end(), end))
    return spans


def _file_spans(text: str) -> list[tuple[int, int]]:
    """Return where fences stand, except a fence that only wraps the block."""
    spans = []
    for match in _FENCED.finditer(text):
        inside = match[0].split("\n", 1)[1].rsplit("\n", 1)[0].strip()
        opening, closings = _OPEN.match(inside), list(_CLOSE.finditer(inside))
        is_wrapper = opening is not None and closings and closings[-1].end() == len(inside)
        if not is_wrapper:
            spans.append(match.span())
    return spans


def _updates(text: str) -> dict[str, Any]:
    inner = unfenced(text)
    if not inner:
        return {}
    try:
        updates = json.loads(
            without_trailing_commas(inner), strict=False, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as error:
        where = f" {place_and_remedy(error)}" if isinstance(error, json.JSONDecodeError) else ""
        raise MalformedMemoryUpdateError(
            f"The <memory_update> block is no JSON{where}. Write one JSON object, without"
            " comments or text around it."
        ) from error
    if not isinstance(updates, dict):
        raise MalformedMemoryUpdateError(
            "The <memory_update> block must be one JSON object of operations, not"
            f" {type(updates).__name__}."
        )
    return updates


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the block.

    Raises:
        MalformedMemoryUpdateError: If it has a key twice, since one of its values would be lost.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise MalformedMemoryUpdateError(
                f"The <memory_update> block has the key {key[:60]!r} twice in one object. Write"
                " it once, with all that belongs to it."
            )
        found[key] = value
    return found
