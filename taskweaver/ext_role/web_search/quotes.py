"""Choice of quotes: the passages of pages that match a query best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskweaver.utils.ranking import best_texts


@dataclass(frozen=True, slots=True)
class Quote:
    """A part of a page, with the title and the address of the page."""

    title: str
    url: str
    text: str


def chunks(text: str, size: int, overlap: int) -> list[str]:
    """Cut a text into parts of at most `size` characters that share `overlap` with the next."""
    parts, at = [], 0
    while at < len(text):
        end = min(at + size, len(text))
        if end < len(text):
            space = text.rfind(" ", at + overlap + 1, end)
            end = space if space > at + size // 2 else end
        parts.append(text[at:end].strip())
        if end == len(text):
            break
        at = max(end - overlap, at + size // 10)
    return [part for part in parts if part]


def best_quotes(quotes: Sequence[Quote], query: str, count: int) -> list[Quote]:
    """Return the quotes that suit a query best; the first ones when no word of it is in any."""
    best = best_texts([f"{quote.title}\n{quote.text}" for quote in quotes], query, count)
    return [quotes[place] for place in best] or list(quotes[:count])
