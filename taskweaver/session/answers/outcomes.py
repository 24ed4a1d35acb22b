"""The texts of a conversation that can support a number, and the numbers in them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ExecutedCell, executed_cell, has_run, parts_of
from taskweaver.memory.post import Post
from taskweaver.memory.round import Evidence, Round
from taskweaver.session.answers.claims import Claim
from taskweaver.session.answers.numbers import Reading, numbers_in
from taskweaver.session.answers.units import LETTER, conversions, is_convertible, mentioned_units

USER = "User"
MAX_CHARS = 64_000
"""Most characters of one text that are read; reports are shorter."""

_COMMENT = re.compile(r"(?<!\S)#.*$", re.MULTILINE)
_PLAIN = re.compile(
    r"(?<!\S)(?P<minus>-?)(?P<digits>\d{1,30}(?:\.\d{1,30})?)(?=[ \t]*(?:\n|\Z)|[ \t]+-?\d)",
    re.ASCII,
)
_IDENTIFIER = re.compile(LETTER)
_LINE_CHARS = 160
_NEAR = 12
_TIE = 1e-9
_ROUNDING_ERROR = 4e-15
CODE = "Code"
"""The part of an outcome that is the code of the cell."""

LISTING = "Listing"
"""The part of a prompt that stands before a request."""


@dataclass(frozen=True, slots=True)
class _Value:
    size: float
    is_negative: bool
    at: int


_SIZE = attrgetter("size")


@dataclass(frozen=True)
class SupportingText:
    """A text that can support numbers.

    `cell` is the number of the cell, 0 for none; `where` names the part of its outcome.
    """

    post_id: str
    cell: int
    where: str
    text: str

    @cached_property
    def _values(self) -> dict[bool, list[_Value]]:
        """The numbers of the text that are negative, and that are not, in the order of size."""
        values = sorted(_values(self.text[:MAX_CHARS]), key=_SIZE)
        return {sign: [v for v in values if v.is_negative is sign] for sign in (True, False)}

    @cached_property
    def _units(self) -> frozenset[str]:
        return mentioned_units(self.text[:MAX_CHARS])

    def sizes(self) -> list[float]:
        """Return the absolute values of all numbers of the text."""
        return [value.size for values in self._values.values() for value in values]

    def find(self, claim: Claim) -> Evidence | None:
        """Return the place of the number nearest to a claim; None if no number is as shown."""
        signs = [claim.sign < 0] if claim.sign else [False, True]
        factors = conversions(claim.unit, self._units)
        converted = [Reading(r.value * f, r.step * f) for f in factors for r in claim.plain]
        for reading in (*claim.readings, *converted):
            near = [value for sign in signs for value in self._near(claim, reading, sign)]
            if near:
                best = min(near, key=lambda value: abs(value.size - reading.value))
                return self._evidence(claim, best)
        return None

    def _near(self, claim: Claim, reading: Reading, sign: bool) -> list[_Value]:  # noqa: FBT001
        """Return the neighbours of a reading, of one sign, that are shown as it is."""
        low, high = _window(claim, reading)
        at = bisect_left(self._values[sign], reading.value, key=_SIZE)
        near = self._values[sign][max(at - 1, 0) : at + 1]
        return [value for value in near if low <= value.size <= high]

    def _evidence(self, claim: Claim, value: _Value) -> Evidence:
        start = self.text.rfind("\n", 0, value.at) + 1
        end = self.text.find("\n", value.at)
        line = self.text[start : end if end >= 0 else None].strip()
        number = self.text.count("\n", 0, value.at) + 1
        signed = -value.size if value.is_negative else value.size
        return Evidence(
            claim.text, signed, self.post_id, self.cell, self.where, number, line[:_LINE_CHARS]
        )


def _window(claim: Claim, reading: Reading) -> tuple[float, float]:
    """Return the bounds of a reading, wider by the rounding error unless it is an integer."""
    low, high = claim.bounds(reading)
    if isinstance(reading.value, int) and reading.step == 1:
        return low, high
    slack = abs(reading.value) * _ROUNDING_ERROR + reading.step * _TIE
    return low - slack, high + slack


def _values(text: str) -> Iterator[_Value]:
    """Yield the numbers of a text; first those between blanks, which most of a table is."""
    rest = []
    at = 0
    for match in _PLAIN.finditer(text):
        digits = match["digits"]
        size = float(digits) if "." in digits else int(digits)
        yield _Value(size, bool(match["minus"]), match.start("digits"))
        rest += [text[at : match.start()], " " * (match.end() - match.start())]
        at = match.end()
    yield from _spelled_values("".join([*rest, text[at:]]))


def _spelled_values(text: str) -> Iterator[_Value]:
    for number in numbers_in(text, with_spaces=False):
        before = text[number.start - 1] if number.start else " "
        if _IDENTIFIER.match(before) and not _is_shape(text, number.start):
            continue
        sizes = {reading.value for reading in (*number.readings, *number.plain)}
        for size in sizes:
            yield _Value(size, number.sign < 0, number.start)
        for start, end in number.parts:
            yield _Value(int(text[start:end]), is_negative=False, at=start)


def _is_shape(text: str, start: int) -> bool:
    """Return whether digits are the second number of a shape, as in ``3000x8``."""
    return start >= 2 and text[start - 1] in "xX×T" and text[start - 2].isdigit()  # noqa: RUF001


class Library:
    """The sources an answer is compared with.

    The newest ones are looked through one by one; the others only if one of them may hold a
    number of the size of the claim, so that an unsupported number costs one search, not one a
    source.
    """

    def __init__(
        self, sources: Sequence[SupportingText], sizes: Sequence[float] | None = None
    ) -> None:
        """Take sources in the order of preference.

        `sizes` holds at least the absolute values of all their numbers, in order; None collects
        them.
        """
        self._near, self._far = sources[:_NEAR], sources[_NEAR:]
        self._sizes = sizes if sizes is not None else _sizes_of(self._far)

    def find(self, claim: Claim) -> Evidence | None:
        """Return the place of a number in the first source that holds it."""
        for source in self._near:
            found = source.find(claim)
            if found is not None:
                return found
        may_hold = is_convertible(claim.unit) or any(
            self._may_hold(claim, reading) for reading in claim.readings
        )
        if not self._far or not may_hold:
            return None
        return next(filter(None, (source.find(claim) for source in self._far)), None)

    def _may_hold(self, claim: Claim, reading: Reading) -> bool:
        low, high = _window(claim, reading)
        at = bisect_left(self._sizes, low)
        return at < len(self._sizes) and self._sizes[at] <= high


def _sizes_of(sources: Iterable[SupportingText]) -> list[float]:
    return sorted(size for source in sources for size in source.sizes())


@dataclass(slots=True)
class _RoundSources:
    """The sources of a round.

    `ranked` are the sources by rank, the newest first, of `posts` read posts with `cells` cells.
    """

    posts: int = 0
    cells: int = 0
    ranked: tuple[list[SupportingText], ...] = field(default_factory=lambda: ([], [], []))


class Outcomes:
    """The sources of a conversation; each post is read once."""

    def __init__(self) -> None:
        self._rounds: dict[str, _RoundSources] = {}
        self._sizes: list[float] = []

    def library(self, rounds: Sequence[Round], leader: str, shown: str) -> Library:
        """Return the sources of a conversation to search in; see `sources`.

        `shown` is what prompts show beside the posts: files, variables and facts.
        """
        listing = SupportingText(rounds[-1].id, 0, LISTING, shown)
        sources = [*self.sources(rounds, leader), listing]  # which collects their sizes
        return Library(sources, sorted([*self._sizes, *listing.sizes()]))

    def sources(self, rounds: Sequence[Round], leader: str) -> list[SupportingText]:
        """Return the texts that can support a number: newest outcomes first, code last.

        The words of `leader`, the role that answers, support nothing.
        """
        known: list[_RoundSources] = []
        cells = 0
        for round_ in rounds:
            found = self._rounds.setdefault(round_.id, _RoundSources())
            self._read(round_.post_list[found.posts :], found, cells, leader)
            cells += found.cells
            known.append(found)
        ranks = range(len(_RoundSources().ranked))
        return [one for rank in ranks for each in reversed(known) for one in each.ranked[rank]]

    def _read(
        self, posts: Sequence[Post], into: _RoundSources, earlier_cells: int, leader: str
    ) -> None:
        for post in posts:
            into.posts += 1
            into.cells += has_run(post)
            number = earlier_cells + into.cells
            cell = executed_cell(number, post) if has_run(post) else None
            sources = _of_post(post, cell, leader)
            for source in reversed(sources):
                rank = 2 if source.where == CODE else 0 if source.cell else 1
                into.ranked[rank].insert(0, source)
            self._sizes += _sizes_of(sources)
        if posts:
            self._sizes.sort()  # two sorted runs, which are merged


def _of_post(post: Post, cell: ExecutedCell | None, leader: str) -> list[SupportingText]:
    if cell is not None:
        return list(cell_sources(cell))
    is_in_words = post.last(AttachmentType.reply_type).strip().lower() == "text"
    if post.send_from == leader or post.send_from == post.send_to or is_in_words:
        return []
    return [SupportingText(post.id, 0, "message", post.message)]


def cell_sources(cell: ExecutedCell) -> Iterator[SupportingText]:
    """Yield the texts of a cell that can support a number: its result first, its code last."""
    order = {"Result": 0, "Output": 1}
    parts = sorted(parts_of(cell.report).items(), key=lambda part: order.get(part[0], 2))
    for title, text in parts:
        yield SupportingText(cell.post_id, cell.number, title, text.strip("\n"))
    variables = "\n".join(f"{name}: {text}" for name, text in cell.variables)
    yield SupportingText(cell.post_id, cell.number, "Variables", variables)
    if cell.is_success:
        yield SupportingText(cell.post_id, cell.number, CODE, _COMMENT.sub("", cell.code))
