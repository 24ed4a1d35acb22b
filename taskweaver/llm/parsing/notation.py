"""Slips in the notation of a JSON object that leave no doubt about its content.

HTML entities or typographic quotes in place of every quote, texts in triple quotes, comments; and,
where it is known that the text did not break off, brackets that are never closed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

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


def mended(text: str) -> Iterator[str]:
    """Yield a text again after each kind of slip in it was corrected; nothing if it has none."""
    if len(text) > _MOST_CHARS:
        return
    for mend in (_without_entities, _with_straight_quotes, _with_plain_texts, _uncommented):
        changed = mend(text)
        if changed != text:
            text = changed
            yield text


def _without_entities(text: str) -> str:
    return html.unescape(text) if '"' not in text and _ENTITY_START.search(text) else text


def _with_straight_quotes(text: str) -> str:
    if '"' in text or not _TYPOGRAPHIC_START.search(text):
        return text
    return _TYPOGRAPHIC.sub('"', text)


def _with_plain_texts(text: str) -> str:
    """Write texts in triple quotes as JSON; a backslash in them is one of the text."""
    if '"""' not in text:
        return text
    return _TRIPLE.sub(lambda match: match[1] + json.dumps(match[2], ensure_ascii=False), text)


def _uncommented(text: str) -> str:
    start = text.find("{")
    if start < 0 or "/" not in text:
        return text
    kept = _PARTS.sub(lambda match: "" if match["comment"] else match[0], text[start:])
    return text[:start] + kept


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
            if not _is_whole(match[0]):
                return text
        elif match[0] in _CLOSING:
            is_open.append(_CLOSING[match[0]])
        elif not is_open or is_open.pop() != match[0]:
            return text
    if not is_open or last_end != len(stripped):
        return text
    return stripped + "".join(reversed(is_open))


def _is_whole(string: str) -> bool:
    try:
        json.loads(string, strict=False)
    except ValueError:
        return False
    return True
