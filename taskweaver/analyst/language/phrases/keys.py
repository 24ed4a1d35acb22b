"""Group keys: ``per species and island``, ``by month of the order date``, ``monthly``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from taskweaver.analyst.language.lookup.parser import Words
from taskweaver.analyst.language.phrases.atoms import Keys
from taskweaver.analyst.readings.condition import CalendarPart
from taskweaver.analyst.readings.reading import GroupKey

Found = tuple[int, Keys, float]
_ADVERBS = frozenset("yearly annual annually quarterly monthly weekly daily hourly".split())
_DROPPED = tuple("the each of every all different single individual column respective".split())


def key_phrases(words: Words, at: int) -> Iterator[Found]:
    """Yield the phrases with group keys that begin at a token."""
    if words.lower(at) in _ADVERBS:
        for end, key, cost in _units(words, at):
            yield end, Keys((key,), words.raw(at, end)), 1.0 + cost
    for stop, _ in words.of_kind(at, "by"):
        start = words.skip(stop, *_DROPPED)
        for end, keys, cost in _lists(words, start):
            is_by = words.lower(stop - 1) == "by" or words.lower(at) == "by"
            yield end, Keys(keys, words.raw(at, end), is_by), 0.9 + cost


Part = tuple[int, tuple[tuple[GroupKey, ...], ...], float]


def _lists(words: Words, at: int) -> Iterator[Part]:
    front: list[Part] = [(end, (key,), cost) for end, key, cost in _elements(words, at)]
    for _ in range(4):
        yield from front
        longer: list[Part] = []
        for stop, keys, cost in front:
            after = words.skip(stop, "and", ",", "&", "und", "et", "y", "и", "og")
            is_joined = after > stop
            by = next((found.end for found in words.of_kind(after, "by")), after)
            if not is_joined and by == after:
                continue
            start = words.skip(by, *_DROPPED)
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
        is_part = is_calendar or unit == "weekday"
        if words.lower(stop) == "of" and words.lower(stop + 1) in ("the", "year", "day"):
            after = words.skip(stop, "of", "the")
            if words.lower(after) in ("year", "day", "week"):
                is_part, end = True, after + 1
        columns, end = _time_columns(words, end)
        keys = tuple(
            key for name in columns if (key := _key(words, name, unit, is_part=is_part)) is not None
        )
        if keys:
            yield end, keys, 0.1


def _time_columns(words: Words, at: int) -> tuple[tuple[str, ...], int]:
    """Return the time columns named after a unit, or those there are."""
    if words.lower(at) in ("of", "in", "from"):
        for column in words.columns(words.skip(at, "of", "in", "from", "the")):
            named = tuple(name for name in column.ref.names if words.profile(name).kind == "time")
            if named:
                return named, column.end
    return words.scope.time_columns, at


def _key(words: Words, name: str, unit: str, *, is_part: bool) -> GroupKey | None:
    if words.profile(name).kind != "time":
        return GroupKey(name) if unit == "year" and not is_part else None
    if is_part:
        is_known = unit in get_args(CalendarPart)
        return GroupKey(name, part=unit) if is_known else None  # type: ignore[arg-type]
    return GroupKey(name, unit=unit)  # type: ignore[arg-type]
