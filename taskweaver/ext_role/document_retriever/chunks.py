"""Division of a document into chunks: paragraphs, each with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_MOST_HEADING = 120
_FENCE = re.compile(r" {0,3}(```|~~~)")


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A paragraph, or a part of a long one, with the headings above it, outermost first."""

    heading: str
    text: str


def document_chunks(text: str, most_chars: int) -> Iterator[DocumentChunk]:
    """Yield the chunks of a document, in order, each of at most `most_chars` characters.

    Short paragraphs under one heading are put together as long as they fit.
    """
    heading, gathered = "", ""
    above: dict[int, str] = {}
    for line, level in _paragraphs(text):
        if not level and gathered and len(gathered) + len(line) + 2 <= most_chars // 2:
            gathered += f"\n\n{line}"
            continue
        if gathered:
            yield DocumentChunk(heading, gathered)
        gathered = ""
        if level:
            above = {each: name for each, name in above.items() if each < level}
            above[level] = line[:_MOST_HEADING]
            heading = " > ".join(above.values())
            continue
        *full, gathered = _split(line, most_chars)
        yield from (DocumentChunk(heading, part) for part in full)
    if gathered:
        yield DocumentChunk(heading, gathered)


def _paragraphs(text: str) -> Iterator[tuple[str, int]]:
    """Yield paragraphs and headings, with the level of a heading and 0 for a paragraph."""
    lines: list[str] = []
    is_code = False
    for line in [*text.replace("\f", "\n\n").splitlines(), ""]:
        heading = None if is_code else _HEADING.match(line)
        if heading or not line.strip():
            if lines:
                yield "\n".join(lines), 0
            lines = []
            if heading:
                yield heading[2].rstrip(" \t#"), len(heading[1])
            continue
        if _FENCE.match(line):
            is_code = not is_code
        lines.append(line.rstrip())
    if lines:
        yield "\n".join(lines), 0


def _split(text: str, most_chars: int) -> list[str]:
    """Split a long paragraph where a line, a sentence or at least a word ends."""
    parts = []
    while len(text) > most_chars:
        head = text[:most_chars]
        ends = (head.rfind("\n"), head.rfind(". ") + 1, head.rfind(" "))
        at = next((end for end in ends if end > most_chars // 2), most_chars)
        parts.append(text[:at].strip())
        text = text[at:].strip()
    return [*(part for part in parts if part), text]
