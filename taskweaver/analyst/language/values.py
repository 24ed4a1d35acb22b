"""Conditions that values and times state, with their options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from taskweaver.analyst.language.names import graded, singular
from taskweaver.analyst.language.parser import Words
from taskweaver.analyst.language.times import Period, Recent, Recurring, TimeBound, When
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    Contains,
    During,
    Latest,
    OnCalendar,
    OneOf,
    Scalar,
)
from taskweaver.tables.files.profile import ValueMatch


@dataclass(frozen=True, slots=True)
class Option:
    """One of the meanings of a condition.

    Attributes:
        column: The column it is about; empty if it is about several.
    """

    column: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class Cond:
    """Condition of a request.

    Attributes:
        options: Its meanings; more than one if its column is not clear.
        is_time: Whether it restricts the time.
        is_list: Whether it lists values with ``and``.
        is_span: Whether it lists parts of the calendar.
        is_negative: Whether it holds a negation.
        is_bare: Whether it consists of values, without the name of the column.
        unused: Words inside that were skipped.
    """

    options: tuple[Option, ...]
    phrase: str
    is_time: bool = False
    is_list: bool = False
    is_span: bool = False
    is_negative: bool = False
    is_bare: bool = False
    unused: tuple[str, ...] = ()


Found = tuple[int, Cond, float]
"""Condition of some tokens, with the place after them and its cost."""


def conjunction(*conditions: Condition | None) -> Condition | None:
    """Return the conjunction of some conditions; None if there are none."""
    parts: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, And):
            parts += condition.parts
        elif condition is not None:
            parts.append(condition)
    parts = list(dict.fromkeys(parts))
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(tuple(parts))


def one_of(name: str, values: tuple[Scalar, ...]) -> Condition:
    """Return the condition that a column has one of some values."""
    return Comparison(Column(name), "==", values[0]) if len(values) == 1 else OneOf(name, values)


def both(left: Condition, right: Condition) -> Condition:
    """Return the conjunction of two conditions."""
    return conjunction(left, right) or left


def shares_column(left: Cond, right: Cond) -> bool:
    """Return whether two conditions may be about the same column."""
    names = {option.column for option in left.options}
    return bool(names & {option.column for option in right.options} - {""})


def as_condition(when: When, column: str, *, is_time: bool) -> Condition | None:
    """Return a restriction of time as a condition on a column of times, or of years as integers.

    None if years cannot express it.
    """
    if isinstance(when, Recent):
        return Latest(column, when.count, when.unit) if is_time or when.unit == "year" else None
    if isinstance(when, Recurring):
        return OnCalendar(column, when.part, when.values) if is_time else None
    if is_time:
        return _during(when, column)
    return _in_years(when, column)


def _during(when: Period | TimeBound, column: str) -> Condition:
    if isinstance(when, Period):
        return During(column, when.start, when.end)
    bounds = {
        "since": (when.period.start, ""),
        "after": (when.period.end, ""),
        "before": ("", when.period.start),
        "until": ("", when.period.end),
    }
    return During(column, *bounds[when.relation])


def _in_years(when: Period | TimeBound, column: str) -> Condition | None:
    period = when if isinstance(when, Period) else when.period
    if not period.first_year or not period.last_year:
        return None
    name = Column(column)
    if isinstance(when, TimeBound):
        if when.relation in ("since", "before"):
            return Comparison(name, ">=" if when.relation == "since" else "<", period.first_year)
        return Comparison(name, ">" if when.relation == "after" else "<=", period.last_year)
    if period.first_year == period.last_year:
        return Comparison(name, "==", period.first_year)
    return And(
        (Comparison(name, ">=", period.first_year), Comparison(name, "<=", period.last_year))
    )


_MOST_GRADES = 4
_BE = tuple("is are was were = == : equals be of ist est es in either".split())
_CONTAIN = frozenset("contains containing contain includes including mentions".split())
_VERBS = frozenset("sat may march will mark rose bill".split())
_BEFORE_NAMES = frozenset("on in for is = of per from and or to between with than by".split())
_AND = ("and", "&", "und", "et", "y", "и", "og")
_OR = ("or", "oder", "ou", "o", "или", "eller")


def value_conditions(words: Words, at: int) -> Iterator[Found]:
    """Yield conditions of values that begin at a token."""
    if at >= words.size:
        return
    yield from _bare(words, at + 1 if words.lower(at) == "either" else at)
    yield from _of_column(words, at)
    yield from _graded(words, at)


def _graded(words: Words, at: int) -> Iterator[Found]:
    """Yield ordinals before the noun of a column of grades: ``1st or 2nd class``."""
    places = [at]
    while words.lower(places[-1] + 1) in (*_AND, *_OR, ",") and len(places) < _MOST_GRADES:
        places.append(places[-1] + 2)
    joints = {words.lower(place + 1) for place in places[:-1]}
    end = places[-1] + 2
    found = [
        graded(words.lower(place), words.lower(end - 1), words.scope.columns) for place in places
    ]
    if not all(found):
        return
    parts: list[Part] = [
        (place, place + 1, tuple(matches)) for place, matches in zip(places, found, strict=True)
    ]
    options = tuple(Option(name, _one_of(name, parts, words)) for name in _shared(parts))
    is_list = bool(joints & set(_AND)) and not joints & set(_OR)
    if options:
        yield end, Cond(options, words.raw(at, end), is_list=is_list), 0.0


def _bare(words: Words, at: int) -> Iterator[Found]:
    """Yield values without their column, or before it, as in ``the Sales department``."""
    if at >= words.size:
        return
    for end, lists, cost, is_list in _lists(words, at, ""):
        columns = _shared(lists)
        plain = all(
            words.is_plain_value(start, stop) and not _is_deed(words, start)
            for start, stop, _ in lists
        )
        if not columns:
            continue
        options = tuple(Option(name, _one_of(name, lists, words)) for name in columns)
        found = Cond(options, words.raw(at, end), is_list=is_list, is_bare=True)
        if plain:
            yield end, found, cost + 0.1
        for column in words.columns(end):
            named = [option for option in options if option.column in column.ref.names]
            if len(named) == 1 and column.ref.distance < 3:
                single = Cond((named[0],), words.raw(at, column.end), is_list=is_list)
                yield column.end, single, cost + column.cost


def _is_deed(words: Words, at: int) -> bool:
    """Return whether a word stands as a verb: ``people sat at the table``."""
    return words.raw(at, at + 1) in _VERBS and words.lower(at - 1) not in _BEFORE_NAMES


def _of_column(words: Words, at: int) -> Iterator[Found]:
    """Yield the name of a column with values after it, as in ``species is Adelie``."""
    for column in words.columns(at):
        start = words.skip(column.end, *_BE)
        noun = words.lower(column.end - 1)
        # "counties in Ohio" are groups: a county is not called Ohio.
        is_group = words.lower(start - 1) in ("in", "of") and singular(noun) != noun
        if is_group or (start == column.end and words.is_kind(at, "time", "cmp")):
            continue
        for name in column.ref.names:
            kind = words.profile(name).kind
            extra = 0.0 if start > column.end else 0.15
            for end, lists, cost, is_list in _lists(words, start, name):
                option = Option(name, _one_of(name, lists, words))
                found = Cond((option,), words.raw(at, end), is_list=is_list)
                yield end, found, column.cost + cost + extra
            if kind == "text":
                yield from _containing(words, at, column.end, name, column.cost)


def _containing(words: Words, at: int, stop: int, name: str, cost: float) -> Iterator[Found]:
    if words.lower(stop) in _CONTAIN:
        start = words.skip(stop + 1, "the", "word", "text", "string")
        if start < words.size and words.tokens[start].kind in ("quoted", "word"):
            text = words.tokens[start].text
            found = Cond((Option(name, Contains(name, text)),), words.raw(at, start + 1))
            yield start + 1, found, cost


Part = tuple[int, int, tuple[ValueMatch, ...]]


def _lists(words: Words, at: int, column: str) -> Iterator[tuple[int, list[Part], float, bool]]:
    """Yield lists of values from a token on: end, values, cost, and whether joined by ``and``."""
    for end, matches, cost in _single(words, at, column):
        front: list[tuple[int, list[Part], float, set[str]]] = [
            (end, [(at, end, matches)], cost, set())
        ]
        for _ in range(12):
            longer: list[tuple[int, list[Part], float, set[str]]] = []
            for stop, parts, sum_, joints in front:
                yield stop, parts, sum_, "and" in joints and "or" not in joints
                longer += _longer(words, stop, parts, sum_, joints, column)
            front = longer[:4]
            if not front:
                break


def _longer(
    words: Words, stop: int, parts: list[Part], cost: float, joints: set[str], column: str
) -> Iterator[tuple[int, list[Part], float, set[str]]]:
    after, found = stop, set(joints)
    while words.lower(after) in (*_AND, *_OR, ",") and after < stop + 2:
        low = words.lower(after)
        found.add("and" if low in _AND else "or" if low in _OR else ",")
        after += 1
    if after == stop:
        return
    start = words.skip(after, "the", "in", "from", "for", "on", "at")
    for end, matches, more in _single(words, start, column):
        longer = [*parts, (start, end, matches)]
        if column or _shared(longer):
            yield end, longer, cost + more - 0.1, found


def _single(
    words: Words, at: int, column: str
) -> Iterator[tuple[int, tuple[ValueMatch, ...], float]]:
    if at >= words.size:
        return
    found = False
    for end, matches, cost in words.values(at):
        own = tuple(match for match in matches if not column or match.column == column)
        if own:
            found = True
            yield end, own, cost
    if column and not found and words.lower(at - 1) != "in":
        number = words.tokens[at].number
        is_numeric = words.is_numeric(column) and not words.columns(at + 1)
        if is_numeric and number is not None and not words.tokens[at].is_percent:
            yield at + 1, (ValueMatch(column, repr(number)),), 0.2


def _shared(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the columns that hold all values of a list."""
    columns = [dict.fromkeys(match.column for match in matches) for _, _, matches in parts]
    return tuple(name for name in columns[0] if all(name in other for other in columns))


def _one_of(name: str, parts: Sequence[Part], words: Words) -> Condition:
    values: list[Scalar] = []
    for _, _, matches in parts:
        values += [_typed(match.value, words, name) for match in matches if match.column == name]
    return one_of(name, tuple(dict.fromkeys(values)))


def _typed(value: str, words: Words, name: str) -> Scalar:
    kind = words.profile(name).kind
    if kind == "flag" and value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    if kind in ("integer", "number"):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value


def explained(words: Words, at: int, found: Sequence[Found]) -> Iterator[Found]:
    """Yield values with their short form in brackets; the short form says which value it is."""
    for middle, cond, _ in found:
        if not cond.is_bare or words.lower(middle) != "(":
            continue
        for end, short, cost in value_conditions(words, middle + 1):
            if words.lower(end) == ")" and short.is_bare and _is_short(short.phrase, cond.phrase):
                yield end + 1, replace(short, phrase=words.raw(at, end + 1)), cost


def _is_short(short: str, phrase: str) -> bool:
    """Return whether letters are a short form of a phrase: ``OH`` of ``Ohio``."""
    rest = iter(phrase.casefold())
    is_inside = all(letter in rest for letter in short.casefold())
    return len(short) < len(phrase) and short[:1].casefold() == phrase[:1].casefold() and is_inside
