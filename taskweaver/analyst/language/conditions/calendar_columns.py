"""Times in tables that hold years, quarters, months, days or hours as columns of integers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from taskweaver.analyst.language.conditions.options import Cond, Found, Option, conjunction, one_of
from taskweaver.analyst.language.lookup.parser import Words
from taskweaver.analyst.language.lookup.scope import DataScope
from taskweaver.analyst.language.lookup.times import Period, Recurring, points, times
from taskweaver.analyst.language.words.names import name_words
from taskweaver.analyst.readings.condition import Column, Comparison, Condition
from taskweaver.analyst.wording.calendar import MONTHS

_LAST = {"quarter": 4, "month": 12, "day": 31, "hour": 24}
_HALVES = {
    ("am",): 0, ("in", "the", "morning"): 0, ("pm",): 12, ("in", "the", "afternoon"): 12,
    ("in", "the", "evening"): 12,
}  # fmt: skip


def calendar_conditions(words: Words, at: int) -> Iterator[Found]:
    """Yield the times that begin at a token as conditions on columns of calendar numbers."""
    if at >= words.size:
        return
    for end, when in times(words, at):
        condition = None
        if isinstance(when, Recurring):
            condition = _recurring(words.scope, when)
        elif isinstance(when, Period) and not words.scope.has_times:
            condition = _period(words.scope, when)
        if condition is not None:
            is_list = isinstance(when, Recurring) and len(when.values) > 1
            yield end, _cond(words, at, end, condition, is_list=is_list), 0.1
    start = words.skip(at, "on", "the", "at", "around")
    for end, found in [*_days(words, start), *_hours(words, start)]:
        yield end, _cond(words, at, end, found), 0.1


def _cond(words: Words, at: int, end: int, condition: Condition, *, is_list: bool = False) -> Cond:
    phrase = words.raw(at, end)
    return Cond((Option("", condition),), phrase, is_time=True, is_span=is_list)


def _column(scope: DataScope, unit: str) -> str | None:
    """Return the column of integers that is called after a unit and holds its numbers."""
    found = [
        name
        for name, column in scope.columns.items()
        if column.kind == "integer"
        and name_words(name) == (unit,)
        and _is_within(scope, name, unit)
    ]
    return found[0] if len(found) == 1 else None


def _is_within(scope: DataScope, name: str, unit: str) -> bool:
    low, high = scope.columns[name].low, scope.columns[name].high
    try:
        return (0 if unit == "hour" else 1) <= float(low) <= float(high) <= _LAST[unit]
    except ValueError:
        return False


def _recurring(scope: DataScope, when: Recurring) -> Condition | None:
    name = _column(scope, when.part) if when.part in ("month", "quarter") else None
    if name is not None:
        return one_of(name, when.values)
    month = _column(scope, "month") if when.part == "quarter" else None
    if month is None:
        return None
    return one_of(month, tuple(m for q in when.values for m in range(q * 3 - 2, q * 3 + 1)))


def _period(scope: DataScope, when: Period) -> Condition | None:
    """Return a day, or months of one year, as conditions on the year and its part."""
    if when.first_year or len(scope.year_columns) != 1:
        return None
    first, last = date.fromisoformat(when.start), date.fromisoformat(when.end) - timedelta(days=1)
    year = Comparison(Column(scope.year_columns[0]), "==", first.year)
    month, day, quarter = (_column(scope, unit) for unit in ("month", "day", "quarter"))
    if first == last:
        parts = (month and one_of(month, (first.month,)), day and one_of(day, (first.day,)))
        return conjunction(year, *(part for part in parts if part)) if all(parts) else None
    is_whole = first.day == 1 and (last + timedelta(days=1)).day == 1
    if not is_whole or first.year != last.year:
        return None
    if month is not None:
        return conjunction(year, one_of(month, tuple(range(first.month, last.month + 1))))
    is_quarter = first.month % 3 == 1 and last.month % 3 == 0
    if quarter is None or not is_quarter:
        return None
    return conjunction(
        year, one_of(quarter, tuple(range(first.month // 3 + 1, last.month // 3 + 1)))
    )


def _days(words: Words, at: int) -> Iterator[tuple[int, Condition]]:
    """Yield ``4th of July`` and ``July 4`` of any year."""
    month_column, day_column = _column(words.scope, "month"), _column(words.scope, "day")
    if month_column is None or day_column is None or any(True for _ in points(words, at)):
        return
    pattern = r"([12]?\d|3[01])(?:st|nd|rd|th)?"
    if match := re.fullmatch(pattern, words.lower(at)):
        month, end = words.skip(at + 1, "of"), words.skip(at + 1, "of") + 1
    elif match := re.fullmatch(pattern, words.lower(at + 1)):
        month, end = at, at + 2
    else:
        return
    number = MONTHS.get(words.lower(month))
    if number is not None and int(match[1]) and words.tokens[month].text[0].isupper():
        both = conjunction(one_of(month_column, (number,)), one_of(day_column, (int(match[1]),)))
        if both is not None:
            yield end, both


def _hours(words: Words, at: int) -> Iterator[tuple[int, Condition]]:
    """Yield ``3 pm`` and ``3 in the afternoon``."""
    column = _column(words.scope, "hour")
    match = re.fullmatch(r"(\d{1,2})(am|pm)?", words.lower(at))
    if column is None or match is None or not 1 <= int(match[1]) <= 12:
        return
    halves = [(at + 1, _HALVES[(match[2],)])] if match[2] else [
        (at + 1 + len(half), offset)
        for half, offset in _HALVES.items()
        if tuple(words.lower(at + 1 + to) for to in range(len(half))) == half
    ]  # fmt: skip
    for end, offset in halves:
        yield end, one_of(column, (int(match[1]) % 12 + offset,))
