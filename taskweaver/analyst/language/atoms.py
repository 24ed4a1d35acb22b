"""Phrases of a request with their content; group keys among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from taskweaver.analyst.language.names import name_words, singular
from taskweaver.analyst.language.parser import Operand, Words
from taskweaver.analyst.language.values import Cond
from taskweaver.analyst.readings import CalendarPart, Chart, Function, GroupKey, Rank, View


@dataclass(frozen=True, slots=True)
class Fn:
    """Aggregate function.

    Attributes:
        quantile: Of a percentile.
        is_least: Whether the rarest value is meant, of ``mode``.
        is_time: Whether it is of times alone: ``latest``.
    """

    function: Function
    quantile: float = 0.0
    is_least: bool = False
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """Group keys; each with the meanings it may have."""

    keys: tuple[tuple[GroupKey, ...], ...]
    phrase: str
    is_by: bool = False


@dataclass(frozen=True, slots=True)
class Noun:
    """Noun for the rows: of the language, or the name of the file; or a unit of time."""

    kind: Literal["row", "person", "thing", "file", "unit"]
    word: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Pick:
    """Rank: ``top 5``, ``second largest``, ``heaviest``.

    Attributes:
        ascending: Whether the smallest comes first.
        count: Number of entries; None if it is not stated.
        nth: 2 for the second alone.
        columns: Columns of the dimension that an adjective states.
        word: The adjective: ``most``, ``top``, ``highest``, ``dimension``.
    """

    ascending: bool
    count: int | None = None
    nth: int = 0
    columns: tuple[str, ...] = ()
    word: str = ""

    @property
    def rank(self) -> Rank:
        """The entries it picks: one, if no number is stated."""
        return Rank(self.ascending, None if self.nth else self.count or 1, self.nth)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Dimension asked for or compared without a number: ``how heavy``, ``heavier than``."""

    columns: tuple[str, ...]
    ascending: bool
    is_comparative: bool = False
    word: str = "it"


@dataclass(frozen=True, slots=True)
class AggregateStep:
    """Step after an aggregation: share, difference, change or running total."""

    kind: Literal["share", "diff", "change", "cumulative"]
    detail: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Chart, or any."""

    chart: Chart | Literal["any"]


@dataclass(frozen=True, slots=True)
class Look:
    """View of a table."""

    view: View | Literal["head", "tail", "ncolumns"]
    count: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """Word that shapes the reading.

    Attributes:
        kind: ``which``, ``who``, ``when``, ``sort``, ``asc``, ``desc``, ``each``, ``over``,
            ``against``, ``files``, ``refused``, ``verb``, ``show``, ``filler`` or ``unused``.
        detail: The word or its detail.
    """

    kind: str
    detail: str = ""


Content = (
    Fn | Operand | Cond | Keys | Noun | Pick | Dimension | AggregateStep | Picture | Look | Mark
)


@dataclass(frozen=True, slots=True)
class Atom:
    """Phrase of a request at its place.

    Attributes:
        start: Number of its first token.
        end: Number after its last token.
    """

    start: int
    end: int
    content: Content
    cost: float


_BAD = frozenset(
    "delay murder assault crime unemployment error loss death accident complaint defect pollution "
    "debt wait fine penalty failure injury mortality".split()
)
_GOOD = frozenset(
    "score rating profit revenue income salary wage grade margin satisfaction yield".split()
)


def judged(words: Words, at: int) -> Iterator[tuple[int, Pick, float]]:
    """Yield ``best`` and ``worst`` of a good or bad quantity, and ``peak`` with ``when``."""
    low = words.lower(at)
    if low in ("peak", "peaked") and words.says(0, "when in"):
        yield at + 1, Pick(ascending=False, word="highest"), 1.0
    if low not in ("best", "worst"):
        return
    named = _quantities(words)
    is_bad, is_good = bool(named & _BAD), bool(named & _GOOD)
    if is_bad != is_good:
        yield at + 1, Pick(ascending=is_bad == (low == "best"), word="highest"), 1.0


def _quantities(words: Words) -> set[str]:
    """Return the words of the request and of the numeric columns it names."""
    found = {singular(words.lower(at)) for at in range(words.size)}
    for at in range(words.size):
        for column in words.columns(at):
            for name in column.ref.names:
                if words.is_numeric(name) and len(column.ref.names) == 1:
                    found.update(name_words(name))
    return found


PARTS = ("weekday", "decade")
"""Units that are parts of the calendar, and no periods."""
Found = tuple[int, Keys, float]
_ADVERBS = "yearly annual annually quarterly monthly weekly daily hourly"
_DROPPED = "the each of every all different single individual column respective"


def key_phrases(words: Words, at: int) -> Iterator[Found]:
    """Yield the phrases with group keys that begin at a token."""
    if words.says(at, _ADVERBS):
        for end, key, cost in _units(words, at):
            yield end, Keys((key,), words.raw(at, end)), 1.0 + cost
    for stop, _ in words.of_kind(at, "by"):
        start = words.skip(stop, _DROPPED)
        is_by = words.lower(stop - 1) == "by" or words.lower(at) == "by"
        for end, keys, cost in _lists(words, start):
            yield end, Keys(keys, words.raw(at, end), is_by), 0.9 + cost
        if words.says(start, "number amount count") and words.lower(start + 1) == "of":
            for end, ref, cost in words.columns(words.skip(start + 2, _DROPPED)):
                if all(map(words.is_numeric, ref.names)):
                    key = tuple(map(GroupKey, ref.names))
                    yield end, Keys((key,), words.raw(at, end), is_by), 0.9 + cost


Part = tuple[int, tuple[tuple[GroupKey, ...], ...], float]


def _lists(words: Words, at: int) -> Iterator[Part]:
    front: list[Part] = [(end, (key,), cost) for end, key, cost in _elements(words, at)]
    for _ in range(4):
        yield from front
        longer: list[Part] = []
        for stop, keys, cost in front:
            after = words.skip(stop, "and , & und et y и og")
            is_joined = after > stop
            by = next((found.end for found in words.of_kind(after, "by")), after)
            if not is_joined and by == after:
                continue
            start = words.skip(by, _DROPPED)
            for end, key, more in _elements(words, start):
                longer.append((end, (*keys, key), cost + more))
        front = longer
        if not front:
            return


def _elements(words: Words, at: int) -> Iterator[tuple[int, tuple[GroupKey, ...], float]]:
    for column in words.columns(at):
        is_named = column.ref.distance < 2 and words.is_kind(at, "unit")
        cost = 0.0 if is_named else column.cost
        yield column.end, tuple(GroupKey(name) for name in column.ref.names), cost
    yield from _units(words, at)


def _units(words: Words, at: int) -> Iterator[tuple[int, tuple[GroupKey, ...], float]]:
    is_calendar = words.lower(at) == "calendar"
    start = at + 1 if is_calendar else at
    for stop, sense in words.of_kind(start, "unit"):
        unit, end = sense.detail, stop
        is_part = is_calendar or unit in PARTS or words.lower(stop - 1) == "month" != unit
        if words.lower(stop) == "of" and words.says(stop + 1, "the year day"):
            after = words.skip(stop, "of the")
            if words.says(after, "year day week"):
                is_part, end = True, after + 1
        columns, last = _time_columns(words, end)
        own = words.scope.own_period(unit) if last == end else ""
        end = last
        keys = tuple(
            key for name in columns if (key := _key(words, name, unit, is_part=is_part)) is not None
        )
        keys = (GroupKey(own),) if own else keys
        if keys:
            yield end, keys, 0.1


def _time_columns(words: Words, at: int) -> tuple[tuple[str, ...], int]:
    """Return the time columns named after a unit, or those there are."""
    if words.says(at, "of in from"):
        for column in words.columns(words.skip(at, "of in from the")):
            named = tuple(name for name in column.ref.names if words.profile(name).kind == "time")
            if named:
                return named, column.end
    return words.scope.time_columns, at


def _key(words: Words, name: str, unit: str, *, is_part: bool) -> GroupKey | None:
    if words.profile(name).kind != "time" and unit != "decade":
        return GroupKey(name) if unit == "year" and not is_part else None
    if is_part:
        is_known = unit in get_args(CalendarPart)
        return GroupKey(name, part=unit) if is_known else None  # type: ignore[arg-type]
    return GroupKey(name, unit=unit)  # type: ignore[arg-type]
