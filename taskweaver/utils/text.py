"""Text that is cut, counted, or only meant for the moment.

Text between the temporal delimiters is shown to a role in the round it was written in and
removed from its view of all earlier rounds (search results, retrieved documents).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

TEMPORAL_START = "{{DELIMITER_START_TEMPORAL}}"
TEMPORAL_END = "{{DELIMITER_END_TEMPORAL}}"
_TEMPORAL = re.compile(re.escape(TEMPORAL_START) + ".*?" + re.escape(TEMPORAL_END), re.DOTALL)
_FENCE = re.compile(r"\s*```\w*[ \t]*\n(.*?)\n?\s*```\s*", re.DOTALL)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_HEADING = re.compile(r"^#+\s+")
_CUT = " ..."

BYTES_PER_TOKEN = 3.6

RUN_THIS = "Run this:"
"""First line of a question that is a cell of the user's own."""


def shorten(text: str, limit_chars: int) -> str:
    """Return `text`, the middle replaced by a note when longer than `limit_chars`."""
    if len(text) <= limit_chars:
        return text
    note = f"\n... {len(text) - limit_chars:,} characters left out ...\n"
    head = limit_chars * 2 // 3
    tail = limit_chars - head
    return text[:head] + note + (text[-tail:] if tail else "")


def shorten_words(text: str, limit_chars: int) -> str:
    """Return `text` in one line, the end replaced by `` ...`` when longer than `limit_chars`.

    It is cut between words, a word that is too long by itself within it.
    """
    line = " ".join(text.split())
    if len(line) <= limit_chars:
        return line
    room = limit_chars - len(_CUT)
    kept = line[: room + 1].rpartition(" ")[0] or line[:room]
    return f"{kept}{_CUT}"


def fenced(text: str, language: str = "") -> str:
    """Return `text` in a fence that is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def paragraphs(*parts: str) -> str:
    """Join the parts that are not empty, with a blank line between."""
    return "\n\n".join(filter(None, parts))


def title_line(question: str) -> str:
    """Return the first line that names a question, or the first line of code of a cell to run.

    Marks of a heading or a comment (``# ``) are left out. Empty for a question without words.
    """
    lines = [_HEADING.sub("", line.strip()) for line in question.splitlines()]
    named = [line for line in lines if line and not line.startswith("```")]
    if named[:1] == [RUN_THIS]:
        named = named[1:] or named
    return named[0] if named else ""


def unfenced(text: str) -> str:
    """Return `text` without a single fence around the text, and without outer space."""
    match = _FENCE.fullmatch(text)
    return (match[1] if match else text).strip()


def folded(text: str) -> str:
    """Return a text as spellings of one name are compared: without case, accents in one form."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def counted(count: int, noun: str) -> str:
    """Return a number with the noun, in the plural where needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question for the known name most like a wrong name, else another text."""
    from difflib import get_close_matches  # kernels import this module, and ask nothing

    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def duration_text(seconds: float) -> str:
    """Return a duration in the usual form: ``45 s``, ``3 min 05 s`` or ``2 h 10 min``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text`: 3.6 bytes of Latin text each, one per CJK character.

    A starting guess: tokenizers need vocabulary files this package does not ship.
    """
    if text.isascii():
        return round(len(text) / BYTES_PER_TOKEN)
    wide = len(_wide_characters().findall(text))
    rest = len(text.encode("utf-8", "replace")) - 3 * wide
    return wide + round(max(rest, 0) / BYTES_PER_TOKEN)


@cache  # not at import: compiling this class of characters takes milliseconds
def _wide_characters() -> re.Pattern[str]:
    return re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def wrap_temporal(text: str) -> str:
    """Mark `text` as meant for the current round only."""
    return f"{TEMPORAL_START}{text}{TEMPORAL_END}"


def has_temporal(text: str) -> bool:
    """Return whether `text` holds any temporal delimiter."""
    return TEMPORAL_START in text or TEMPORAL_END in text


def remove_temporal_parts(text: str) -> str:
    """Return `text` without the parts between temporal delimiters."""
    return _TEMPORAL.sub("", text) if TEMPORAL_START in text else text


def remove_temporal_delimiters(text: str) -> str:
    """Return `text` without the delimiters, but with the parts between delimiters."""
    return text.replace(TEMPORAL_START, "").replace(TEMPORAL_END, "")


def fill(template: str, **values: str) -> str:
    """Replace ``{NAME}`` for each given name in one pass. All further braces stay unchanged.

    Replaced text is never looked at again, so foreign text is never a template.
    """
    if not values:
        return template
    names = "|".join(re.escape(name) for name in values)
    return re.sub(r"\{(" + names + r")\}", lambda match: values[match[1]], template)


def without_addresses(text: str) -> str:
    """Return a text without addresses of objects in memory, which differ each time."""
    return _ADDRESS.sub(" at 0x", text)
