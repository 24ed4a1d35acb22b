"""Models' errors in JSON: unambiguous errors are repaired, all others described."""

from __future__ import annotations

import json
import re

_COMMA = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|(?<![\[{,])(?P<trailing>,)(?=\s*+[}\]])', re.DOTALL
)
_BEFORE_CHARS, _AFTER_CHARS = 40, 20
_WORDS = {
    "Expecting property name": "here a name in double quotes is needed, or the end of the object",
    "Expecting ':'": "here a colon is needed, after the name",
    "Expecting ','": 'here a comma is needed, or the end of the object or list; a " inside a text'
    ' is written \\"',
    "Expecting value": "here a value is needed: a text in double quotes, a number, true, false,"
    " null, an object or a list",
    "Unterminated string": "the text that begins here is never closed with a double quote",
    "Invalid \\escape": "a backslash in a text is written \\\\",
    "Extra data": "the JSON ends here, and nothing may follow it",
}
"""By the beginning of the parser's own message."""


def without_trailing_commas(text: str) -> str:
    """Return JSON without commas before a closing bracket. Texts stay unchanged."""
    return _COMMA.sub(lambda match: "" if match["trailing"] else match[0], text)


def place_and_remedy(error: json.JSONDecodeError) -> str:
    """Return where a text stops being JSON, with a quotation, and the token needed there."""
    text, at = error.doc, error.pos
    before = text[max(at - _BEFORE_CHARS, 0) : at].rpartition("\n")[2]
    after = text[at : at + _AFTER_CHARS].partition("\n")[0]
    place = f"after `{before}`" if before.strip() else "at the beginning of the line"
    words = next((said for start, said in _WORDS.items() if error.msg.startswith(start)), error.msg)
    followed = f", before `{after}`" if after.strip() else ""
    return f"in line {error.lineno}, {place}{followed}: {words}"
