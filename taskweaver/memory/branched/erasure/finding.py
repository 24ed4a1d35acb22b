"""Finds many texts at once in a text or in bytes, whole or cut off with dots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import AnyStr, Generic

Span = tuple[int, int]
"""Begin and end of a place."""
_PREFIX = 12
_HEAD = 24
"""Fewest characters of a beginning that was cut off."""


@dataclass(frozen=True, slots=True)
class Form:
    """Bytes that a file may hold a text as, with bytes before and after it, which stay."""

    before: bytes
    text: bytes
    after: bytes


class TextFinder(Generic[AnyStr]):
    """Finds needles, which are grouped by their beginnings so that many take little longer."""

    def __init__(self, needles: Iterable[AnyStr], dots: AnyStr) -> None:
        """Take the needles, and the dots that stand behind a beginning that was cut off."""
        self._dots: AnyStr = dots
        self._groups: dict[AnyStr, dict[AnyStr, list[AnyStr]]] = {}
        for needle in needles:
            heads = self._groups.setdefault(needle[:_PREFIX], {})
            heads.setdefault(needle[:_HEAD], []).append(needle)

    def spans(self, hay: AnyStr) -> list[Span]:
        """Return where needles stand, in order; places that overlap are one."""
        return joined(
            span for prefix, heads in self._groups.items() for span in self._in(hay, prefix, heads)
        )

    def _in(self, hay: AnyStr, prefix: AnyStr, heads: dict[AnyStr, list[AnyStr]]) -> Iterator[Span]:
        lengths = {len(head) for head in heads}
        place = hay.find(prefix)
        while place >= 0:
            end = max(
                (
                    self._end(hay, place, needle)
                    for length in lengths
                    for needle in heads.get(hay[place : place + length], ())
                ),
                default=place,
            )
            if end > place:
                yield place, end
            place = hay.find(prefix, max(end, place + 1))

    def _end(self, hay: AnyStr, place: int, needle: AnyStr) -> int:
        """Return where a needle ends that may begin at a place; the place if it does not."""
        whole = place + len(needle)
        if hay.startswith(needle, place):
            return whole
        end, cut = place, hay.find(self._dots, place + _HEAD, whole + len(self._dots))
        while cut >= 0 and needle.startswith(hay[place:cut]):
            end, cut = cut, hay.find(self._dots, cut + 1, whole + len(self._dots))
        return end


class FormFinder:
    """Finds forms of texts in the bytes of files."""

    def __init__(self, forms: Iterable[Form]) -> None:
        """Take the forms."""
        free = []
        self._beside: dict[tuple[bytes, bytes], set[bytes]] = {}
        for form in forms:
            if form.before or form.after:
                self._beside.setdefault((form.before, form.after), set()).add(form.text)
            else:
                free.append(form.text)
        self._free = TextFinder(free, b"...")

    def spans(self, data: bytes) -> list[Span]:
        """Return where bytes hold a text, in order; places that overlap are one."""
        beside = (
            span
            for (before, after), texts in self._beside.items()
            for span in _between(data, before, texts, after)
        )
        return joined([*self._free.spans(data), *beside])


def _between(data: bytes, before: bytes, texts: set[bytes], after: bytes) -> Iterator[Span]:
    """Yield where one of some texts stands between two sequences."""
    lengths = {len(text) for text in texts}
    place = data.find(before)
    while place >= 0:
        start = place + len(before)
        for length in lengths:
            end = start + length
            if data[start:end] in texts and data.startswith(after, end):
                yield start, end
        place = data.find(before, place + 1)


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return places in order, those that overlap as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            first, last = found.pop()
            found.append((first, max(last, end)))
        else:
            found.append((start, end))
    return found
