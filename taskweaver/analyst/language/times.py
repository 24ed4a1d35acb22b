"""Expressions of time: years, months, quarters, seasons, days, and ranges of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from taskweaver.analyst.language.lexicon import SEASONS
from taskweaver.analyst.language.parser import Words
from taskweaver.analyst.readings import CalendarPart, Unit
from taskweaver.analyst.wording.inert import MONTHS, WEEKDAYS


@dataclass(frozen=True, slots=True)
class Period:
    """Time from a day up to, and without, another; whole years are marked."""

    start: str
    end: str
    first_year: int = 0
    last_year: int = 0


@dataclass(frozen=True, slots=True)
class Recurring:
    """Part of the calendar in any year."""

    part: CalendarPart
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recent:
    """Last units of the data."""

    count: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class TimeBound:
    """Time before, after, since or until a period."""

    relation: str
    period: Period


When = Period | Recurring | Recent | TimeBound
_NEEDS_CAPITAL = frozenset("may mar sun sat mon fri wed mai mars jun jul dec jan thu tue".split())
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3,
             "4th": 4, "last": 4}  # fmt: skip
_WEEKENDS = ("weekend", "weekends", "wochenende", "helg")


def years(first: int, last: int) -> Period:
    """Return the period of whole years, both included."""
    return Period(f"{first:04}-01-01", f"{last + 1:04}-01-01", first, last)


def months(year: int, first: int, count: int) -> Period:
    """Return the period of some months from one on."""
    end = first + count
    return Period(
        f"{year:04}-{first:02}-01",
        f"{year + (end - 1) // 12:04}-{(end - 1) % 12 + 1:02}-01",
    )


def _day(year: int, month: int, day: int) -> Period | None:
    try:
        start = date(year, month, day)
        return Period(start.isoformat(), (start + timedelta(days=1)).isoformat())
    except (ValueError, OverflowError):
        return None


def year_at(words: Words, at: int) -> int | None:
    """Return the year at a token; None for none."""
    if not 0 <= at < words.size or words.tokens[at].kind != "number":
        return None
    text = words.tokens[at].text
    return int(text) if re.fullmatch(r"1[0-9]{3}|20[0-9]{2}|21[0-9]{2}", text) else None


def _year_after(words: Words, at: int) -> tuple[int, int | None]:
    """Return the place after a year that follows a part of it, and the year; None for none."""
    place = words.skip(at, "of in , the year des de")
    return place + 1, year_at(words, place)


def points(words: Words, at: int) -> Iterator[tuple[int, Period | Recurring]]:
    """Yield the times named at a token, each with the place after it."""
    if at >= words.size:
        return
    year = year_at(words, at)
    if year:
        yield at + 1, years(year, year)
    if words.tokens[at].kind == "date":
        dated = _dated(words.tokens[at].text)
        if dated:
            yield at + 1, dated
    yield from _decade(words, at)
    yield from _month(words, at)
    yield from _part_of_year(words, at)
    yield from _season(words, at)
    yield from _week(words, at)


def _dated(text: str) -> Period | None:
    if match := re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})", text):
        return _day(int(match[1]), int(match[2]), int(match[3]))
    if match := re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", text):
        return _day(int(match[3]), int(match[2]), int(match[1]))
    if (match := re.fullmatch(r"(\d{4})-(\d{2})", text)) and 1 <= int(match[2]) <= 12:
        return months(int(match[1]), int(match[2]), 1)
    return None


def _decade(words: Words, at: int) -> Iterator[tuple[int, Period]]:
    if match := re.fullmatch(r"(1\d{2}0|20\d0)(?:s|ern?)", words.lower(at)):
        yield at + 1, years(int(match[1]), int(match[1]) + 9)
    elif match := re.fullmatch(r"([3-9]0)(?:s|ern?)", words.lower(at)):
        yield at + 1, years(1900 + int(match[1]), 1909 + int(match[1]))


def _month(words: Words, at: int) -> Iterator[tuple[int, Period | Recurring]]:
    month = MONTHS.get(words.lower(at))
    if month is None:
        yield from _day_before_month(words, at)
        return
    is_first = at == 0 or words.says(at - 1, ". : ?")
    before = words.lower(at - 1)
    is_named = words.is_kind(at - 1, "time between") or before in ("in", "of", "im", "en")
    is_capital = not is_first and words.tokens[at].text[:1].isupper()
    if words.lower(at) in _NEEDS_CAPITAL and not is_named and not is_capital:
        return
    day = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", words.lower(at + 1))
    if day and 1 <= int(day[1]) <= 31:
        after = words.skip(at + 2, ",")
        year = year_at(words, after)
        dated = _day(year, month, int(day[1])) if year else None
        if dated:
            yield after + 1, dated
        return
    end, year = _year_after(words, at + 1)
    if year:
        yield end, months(year, month, 1)
    else:
        yield at + 1, Recurring("month", (month,))


def _day_before_month(words: Words, at: int) -> Iterator[tuple[int, Period]]:
    day = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", words.lower(at))
    after = words.skip(at + 1, "of . the")
    month = MONTHS.get(words.lower(after))
    year = year_at(words, words.skip(after + 1, ","))
    if day and month and year:
        dated = _day(year, month, int(day[1]))
        if dated:
            yield words.skip(after + 1, ",") + 1, dated


def _part_of_year(words: Words, at: int) -> Iterator[tuple[int, Period | Recurring]]:
    """Yield quarters and halves."""
    low = words.lower(at)
    number, size, after = 0, 0, at + 1
    if match := re.fullmatch(r"([qh])([1-4])", low):
        number, size = int(match[2]), 3 if match[1] == "q" else 6
    elif low in _ORDINALS and words.says(at + 1, "quarter half"):
        size = 3 if words.lower(at + 1) == "quarter" else 6
        number = 2 if low == "last" and size == 6 else _ORDINALS[low]
        after = at + 2
    if not size or number * size > 12:
        return
    end, year = _year_after(words, after)
    if year:
        yield end, months(year, (number - 1) * size + 1, size)
    elif low != "last" and size == 3:
        yield after, Recurring("quarter", (number,))
    elif low != "last":
        yield after, Recurring("quarter", (number * 2 - 1, number * 2))


def _season(words: Words, at: int) -> Iterator[tuple[int, Period | Recurring]]:
    low = words.lower(at).removesuffix("s") if words.lower(at) != "s" else "s"
    season = SEASONS.get(low)
    if season is None:
        return
    end, year = _year_after(words, at + 1)
    if not year:
        yield at + 1, Recurring("month", season)
    elif season[0] != 12:
        yield end, months(year, season[0], 3)


def _week(words: Words, at: int) -> Iterator[tuple[int, Recurring]]:
    low = words.lower(at)
    if low in _WEEKENDS:
        yield words.skip(at + 1, "days day"), Recurring("weekday", (5, 6))
    if low in ("weekdays", "workdays") or (low == "working" and words.lower(at + 1) == "days"):
        yield at + (2 if low == "working" else 1), Recurring("weekday", (0, 1, 2, 3, 4))
    day = WEEKDAYS.get(low)
    if day is not None and (low not in _NEEDS_CAPITAL or words.tokens[at].text[:1].isupper()):
        yield at + 1, Recurring("weekday", (day,))


def times(words: Words, at: int) -> Iterator[tuple[int, When]]:
    """Yield the restrictions of time that begin at a token."""
    start = words.skip(at, "the in on during of for den im en i el")
    for begin in {at, start}:
        for end, point in points(words, begin):
            yield end, point
            yield from _listed(words, end, point)
    yield from _related(words, at)
    yield from _ranges(words, at)
    yield from _recent(words, start)
    yield from _tails(words, at)


def _listed(words: Words, at: int, first: Period | Recurring) -> Iterator[tuple[int, When]]:
    """Yield lists of months or weekdays; lists of years are joined by conditions."""
    if not isinstance(first, Recurring):
        return
    values, end = first.values, at
    while words.says(end, "and or , und &"):
        after = words.skip(end, "and or , und &")
        found = [
            (stop, point)
            for stop, point in _without_year(words, words.skip(after, "in on"))
            if isinstance(point, Recurring) and point.part == first.part
        ]
        if not found:
            return
        end, point = found[0]
        values += point.values
        yield end, Recurring(first.part, tuple(dict.fromkeys(values)))
    stop, year = _year_after(words, end)
    is_run = values == tuple(range(values[0], values[0] + len(values)))
    if year and first.part == "month" and is_run and end > at:
        yield stop, months(year, values[0], len(values))


def _without_year(words: Words, at: int) -> Iterator[tuple[int, Period | Recurring]]:
    """Yield the times at a token; of a month with a year also the month alone."""
    yield from points(words, at)
    month = MONTHS.get(words.lower(at))
    if month is not None and year_at(words, at + 1):
        yield at + 1, Recurring("month", (month,))


def _related(words: Words, at: int) -> Iterator[tuple[int, When]]:
    for stop, sense in words.of_kind(at, "time"):
        start = words.skip(stop, "the year in den end of beginning start")
        between = [words.lower(place) for place in range(stop, start)]
        for end, point in points(words, start):
            if not isinstance(point, Period):
                continue
            relation = sense.detail
            if "end" in between and relation in ("since", "from", "before"):
                continue
            if {"beginning", "start"} & set(between) and relation in ("after", "until"):
                continue
            if relation == "during":
                yield end, point
            elif relation == "from" and words.says(end, "on onwards onward"):
                yield end + 1, TimeBound("since", point)
            else:
                yield end, TimeBound(relation, point)


def _ranges(words: Words, at: int) -> Iterator[tuple[int, When]]:
    openings = [
        (found.end, "and to - \N{EN DASH} und et y og") for found in words.of_kind(at, "between")
    ]
    to = "to until till through bis à au a hasta til up - \N{EN DASH} по thru"
    froms = (found for found in words.of_kind(at, "time") if found.sense.detail == "from")
    openings += [(found.end, to) for found in froms]
    bare = words.skip(at, "in the years")
    openings.append((bare, "- \N{EN DASH} to through until bis"))
    for stop, joints in openings:
        start = words.skip(stop, "the year years")
        for middle, first in points(words, start):
            if not words.says(middle, joints):
                continue
            then = words.skip(middle + 1, "the year to")
            for end, second in points(words, then):
                span = _span(first, second)
                if span is not None:
                    yield end, span


def _span(first: Period | Recurring, second: Period | Recurring) -> When | None:
    if isinstance(first, Recurring) and isinstance(second, Period) and first.part == "month":
        year, month = int(second.start[:4]), first.values[0]
        first = months(year, month, len(first.values))
    if isinstance(first, Period) and isinstance(second, Period):
        if second.start < first.start:
            return None
        return Period(first.start, second.end, first.first_year, second.last_year)
    if isinstance(first, Recurring) and isinstance(second, Recurring) and first.part == second.part:
        low, high = first.values[0], second.values[-1]
        if low <= high:
            return Recurring(first.part, tuple(range(low, high + 1)))
    return None


def _recent(words: Words, at: int) -> Iterator[tuple[int, When]]:
    at = words.skip(at, "over within across the")
    if not words.says(at, "last past latest recent previous final most"):
        return
    after = words.skip(at + 1, "recent")
    count = words.number(after)
    unit_at = after if count is None else after + 1
    for end, sense in words.of_kind(unit_at, "unit"):
        if sense.detail in "year quarter month week day hour".split():
            unit: Unit = sense.detail  # type: ignore[assignment]
            if count is None and words.says(at, "past previous"):
                continue
            if count is None or (count >= 1 and count == int(count)):
                yield end, Recent(int(count or 1), unit)


def _tails(words: Words, at: int) -> Iterator[tuple[int, When]]:
    start = words.skip(at, "in on from the")
    for end, point in points(words, start):
        if isinstance(point, Period):
            for stop, sense in words.of_kind(end, "tail"):
                yield stop, TimeBound("since" if sense.detail == ">=" else "until", point)
