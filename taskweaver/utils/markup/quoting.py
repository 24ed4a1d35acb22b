"""Foreign text inside a prompt, no line of which reads like a part of the prompt's own frame.

A prompt gives messages with headers (``From:``, ``Message:``) and sections with headings. Text
that repeats one would pass for another sender's, so each line that reads like one is quoted. Lines
are compared by their look: letters of other alphabets, widths and invisible characters are folded.
All other text stays as it is, so a prompt without attack costs no token more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from taskweaver.utils.markup.characters import with_line_feeds, without_steering

MARK = "> "
_MOST_CHARS = 300
"""Characters of a line that are looked at."""
_ALIKE = {
    "a": "\u0430\u0251\u03b1",
    "d": "\u0501",
    "e": "\u0435\u0454\u04bd\u03b5",
    "f": "\u0192",
    "g": "\u0261\u0581",
    "h": "\u04bb",
    "i": "\u0456\u0269\u03b9",
    "l": "\u04cf",
    "m": "\u043c",
    "n": "\u0578\u043f",
    "o": "\u043e\u03bf\u0585\u03c3\u09e6",
    "p": "\u0440\u03c1",
    "r": "\u0433\u1d26",
    "s": "\u0455\ua731",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u0475\u03bd",
    "y": "\u0443\u04af",
}
_LOOKS_LIKE = str.maketrans({other: letter for letter, all_ in _ALIKE.items() for other in all_})
_COLONS = str.maketrans(dict.fromkeys("\ua789\u02d0\u02f8\u05c3\u2236\u0589\u2982", ":"))
_HEADER = re.compile(
    r"[\W_]*(?:from|sender|message|user|system|assistant|developer|human|the user asked)[\W_]*:"
    r"|[\W_]*let.?s start the new conversation"
)
_HEADING = re.compile(r"[\s>]*(#{1,6})\s")
_TURN = re.compile(r"[\s>*]*(?:[\w .-]{1,60}->[\w .-]{1,60}:|\[[a-z_]{3,30}\])")


def quoted(text: str) -> str:
    """Return the text of a message in which lines that read like a header begin with ``> ``."""
    return _marked(text, _reads_like_header)


def quoted_section(text: str, level: int = 2) -> str:
    """Return the text of a section. Lines like a heading, a turn or a header begin with ``> ``.

    Args:
        text: The text.
        level: Level of the highest heading in the prompt; higher ones in the text, e.g.
            comments of code, stay.
    """
    return _marked(text, lambda folded: _reads_like_section(folded, level))


def indented(text: str) -> str:
    """Return the text of an item of a list: all lines but the first are indented."""
    return with_line_feeds(text).replace("\n", "\n  ") if not text.isprintable() else text


def _marked(text: str, is_frame: Callable[[str], bool]) -> str:
    lines = with_line_feeds(text).split("\n")
    return "\n".join(
        f"{MARK}{line}" if is_frame(_folded(line[:_MOST_CHARS])) else line for line in lines
    )


def _reads_like_header(folded: str) -> bool:
    return _HEADER.match(folded) is not None


def _reads_like_section(folded: str, level: int) -> bool:
    heading = _HEADING.match(folded)
    is_heading = heading is not None and len(heading[1]) >= level
    return is_heading or _TURN.match(folded) is not None or _reads_like_header(folded)


def _folded(line: str) -> str:
    """Return a line as the line looks: one alphabet, one case, nothing invisible."""
    line = without_steering(line.replace("\t", " "))
    if line.isascii() and line.isprintable():
        return line.lower()
    # Letters of mathematics have a case only once they are decomposed.
    plain = unicodedata.normalize("NFKD", line.translate(_COLONS)).casefold().translate(_LOOKS_LIKE)
    return "".join(c for c in plain if unicodedata.category(c) not in {"Cf", "Cc", "Mn", "Me"})
