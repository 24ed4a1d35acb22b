"""Characters that steer a display instead of being shown: control, bidirectional, invisible."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window title, links, clipboard, device strings
    r"|[ -/]*[0-~])"
)
_LINE_ENDS = re.compile("\r\n|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ALL_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 but tab and line feed
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line ends, direction of text
    "\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"  # no width, annotations
    "\U000e0000-\U000e007f]"  # tags: a copy of ASCII that nothing shows
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def with_line_feeds(text: str) -> str:
    """Return `text` with every line end of Unicode, carriage returns too, as a line feed."""
    return _ALL_LINE_ENDS.sub("\n", text)


def without_steering(text: str) -> str:
    """Return `text` for a display: tabs, line feeds and visible characters.

    Escape sequences go with their content, a carriage return goes alone, further line ends of
    Unicode become line feeds, and halves of surrogate pairs the replacement character.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    return _SURROGATES.sub("\ufffd", _STEERING.sub("", text))


def escaped_steering(text: str) -> str:
    """Return JSON in which characters that steer a display are written as escapes."""
    return _STEERING.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
