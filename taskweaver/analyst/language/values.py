"""Conditions that values and times state, with their options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from taskweaver.analyst.language.names import (
    graded,
    is_stem,
    meanings,
    opposites,
    singular,
)
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
        is_list: Whether it lists values with ``and``, or compares them.
        is_compared: Whether it lists values with ``versus`` or ``than``.
        is_span: Whether it lists parts of the calendar.
        is_negative: Whether it holds a negation.
        is_bare: Whether it consists of values, without the name of the column.
        unused: Words inside that were skipped.
    """

    options: tuple[Option, ...]
    phrase: str
    is_time: bool = False
    is_list: bool = False
    is_compared: bool = False
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
    return _during(when, column) if is_time else _in_years(when, column)


def in_parts(when: When, parts: Mapping[str, str]) -> Condition | None:
    """Return a restriction of time as a condition on the columns of the parts of a date.

    None if they cannot express it.
    """
    if isinstance(when, Recent) or not parts:
        return None
    if isinstance(when, Recurring):
        of_quarters = [3 * (number - 1) + n for number in when.values for n in (1, 2, 3)]
        months = {"month": when.values, "quarter": tuple(of_quarters)}.get(when.part)
        return one_of(parts["month"], months) if months else None
    if "year" not in parts or (years := _in_years(when, parts["year"])):
        return years if "year" in parts else None
    return _in_months(when, parts) if isinstance(when, Period) else None


def _in_months(period: Period, parts: Mapping[str, str]) -> Condition | None:
    """Return a day, or whole months of one year, as a condition on the parts of a date."""
    first, last = (date.fromisoformat(day) for day in (period.start, period.end))
    last -= timedelta(days=1)
    wanted = {"year": (first.year,), "month": tuple(range(first.month, last.month + 1))}
    if first == last:
        wanted["day"] = (first.day,)
    is_whole = first == last or (first.day == 1 == (last + timedelta(days=1)).day)
    if first.year != last.year or not is_whole or not wanted.keys() <= parts.keys():
        return None
    return conjunction(*(one_of(parts[part], values) for part, values in wanted.items()))


def _during(when: Period | TimeBound, column: str) -> Condition:
    if isinstance(when, Period):
        return During(column, when.start, when.end)
    bounds = {
        "from": (when.period.start, ""),
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
        if when.relation in ("since", "from", "before"):
            return Comparison(name, "<" if when.relation == "before" else ">=", period.first_year)
        return Comparison(name, ">" if when.relation == "after" else "<=", period.last_year)
    if period.first_year == period.last_year:
        return Comparison(name, "==", period.first_year)
    return And(
        (Comparison(name, ">=", period.first_year), Comparison(name, "<=", period.last_year))
    )


_RELATIVE = "who that which"
_MOST_GRADES, _SHORTEST_FLAG, _FLAG_COST = 4, 3, 0.7
_BE = "is are was were = == : equals be of ist est es in either"
_WITH = "with having containing mit"
_CALLED = "called named namens"
_CONTAIN = "contains containing contain includes including mentions"
_OWNED = "with have has had having in on mit"
_VERBS = frozenset("sat may march will mark rose bill".split())
_BEFORE_NAMES = "on in for is = of per from and or to between with than by"
AND, OR = "and & und et y и og", "or oder ou o или eller"
_JOINTS = {"and": AND, "or": OR, "vs": "vs versus than als gegen"}


def value_conditions(words: Words, at: int) -> Iterator[Found]:
    """Yield conditions of values that begin at a token."""
    if at >= words.size:
        return
    yield from _bare(words, at + 1 if words.lower(at) == "either" else at)
    yield from _of_column(words, at)
    yield from _graded(words, at)
    yield from _in_names(words, at)
    yield from flags(words, at)


def flags(words: Words, at: int) -> Iterator[Found]:
    """Yield a column of yes and no as a condition: ``smokers``, ``with central heating``."""
    low = words.lower(at)
    before = at - 1 if words.says(at - 1, "a an the") else at
    for column in words.columns(at) if words.says(before - 1, _OWNED) else ():
        name = column.ref.names[0]
        yes = words.scope.flag_value(name) if len(column.ref.names) == 1 else None
        if column.end > at + 1 and isinstance(yes, str):
            option = Option(name, one_of(name, (typed(yes, words, name),)))
            yield column.end, Cond((option,), words.raw(at, column.end), is_bare=True), column.cost
    if words.tokens[at].kind != "word" or len(low) <= _SHORTEST_FLAG:
        return
    for name in words.scope.columns:
        yes, no = words.scope.flag_value(name), words.scope.no_value(name)
        is_opposite = name.casefold() in opposites(low)
        value = no if is_opposite else yes
        is_form = is_stem(low, name) or is_stem(singular(low), name)
        is_meant = is_opposite or is_form or name.casefold() in meanings(low)
        if is_meant and isinstance(value, str):
            option = Option(name, one_of(name, (typed(value, words, name),)))
            is_exact = singular(low) == singular(name.casefold())
            cost = 0.05 if is_exact else _FLAG_COST
            cost = -0.1 if words.says(at - 1, _RELATIVE) else cost
            yield at + 1, Cond((option,), words.raw(at, at + 1), is_bare=True), cost


def _graded(words: Words, at: int) -> Iterator[Found]:
    """Yield ordinals before the noun of a column of grades: ``1st or 2nd class``."""
    places = [at]
    while words.says(places[-1] + 1, f"{AND} {OR} ,") and len(places) < _MOST_GRADES:
        places.append(places[-1] + 2)
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
    is_and, is_or = (
        any(words.says(place + 1, joint) for place in places[:-1]) for joint in (AND, OR)
    )
    is_list = is_and and not is_or
    if options:
        yield end, Cond(options, words.raw(at, end), is_list=is_list), 0.0


def _bare(words: Words, at: int) -> Iterator[Found]:
    """Yield values without their column, or before it, as in ``the Sales department``."""
    if at >= words.size:
        return
    for end, lists, cost, joint in _lists(words, at, ""):
        is_list, is_compared = joint in ("and", "vs", ","), joint == "vs"
        columns = _shared(lists)
        plain = all(
            words.is_plain_value(start, stop) and not _is_deed(words, start)
            for start, stop, _ in lists
        )
        if not columns:
            continue
        options = tuple(Option(name, _one_of(name, lists, words)) for name in columns)
        found = Cond(
            options, words.raw(at, end), is_list=is_list, is_compared=is_compared, is_bare=True
        )
        if plain:
            yield end, found, cost + 0.1
        for column in words.columns(end):
            named = [option for option in options if option.column in column.ref.names]
            if len(named) == 1 and column.ref.distance < 3:
                single = Cond((named[0],), words.raw(at, column.end), is_list=is_list)
                yield column.end, single, cost + column.cost


def _is_deed(words: Words, at: int) -> bool:
    """Return whether a word stands as a verb: ``people sat at the table``."""
    return words.raw(at, at + 1) in _VERBS and not words.says(at - 1, _BEFORE_NAMES)


def _of_column(words: Words, at: int) -> Iterator[Found]:
    """Yield the name of a column with values after it, as in ``species is Adelie``."""
    for column in words.columns(at):
        start = words.skip(column.end, _BE)
        noun = words.lower(column.end - 1)
        # "counties in Ohio" are groups: a county is not called Ohio.
        is_group = words.says(start - 1, "in of") and singular(noun) != noun
        if is_group or (start == column.end and words.is_kind(at, "time cmp")):
            continue
        for name in column.ref.names:
            kind = words.profile(name).kind
            extra = 0.0 if start > column.end else 0.15
            for end, lists, cost, joint in _lists(words, start, name):
                option = Option(name, _one_of(name, lists, words))
                found = Cond((option,), words.raw(at, end), is_list=joint in ("and", "vs", ","))
                yield end, found, column.cost + cost + extra
            if kind == "text":
                yield from _containing(words, at, column.end, name, column.cost)


def _containing(words: Words, at: int, stop: int, name: str, cost: float) -> Iterator[Found]:
    if words.says(stop, _CONTAIN):
        start = words.skip(stop + 1, "the word text string")
        if start < words.size and words.tokens[start].kind in ("quoted", "word"):
            yield start + 1, _with_text(words, at, start + 1, name, start), cost


def _with_text(words: Words, at: int, end: int, name: str, place: int) -> Cond:
    """Return the condition that a column contains the token at a place."""
    option = Option(name, Contains(name, words.tokens[place].text))
    return Cond((option,), words.raw(at, end))


def _in_names(words: Words, at: int) -> Iterator[Found]:
    """Yield ``with benz in the name`` and ``called Heathrow``."""
    place, label = at + 1, words.scope.label
    if place >= words.size or words.tokens[place].kind not in ("quoted", "word"):
        return
    if words.says(at, _WITH) and words.says(place + 1, "in im"):
        for column in words.columns(words.skip(place + 2, "the its their der dem")):
            name = column.ref.names[0]
            if len(column.ref.names) == 1 and words.profile(name).kind == "text":
                yield column.end, _with_text(words, at, column.end, name, place), 0.2
    is_known = words.values(place) or words.columns(place)
    if words.says(at, _CALLED) and label and not is_known:
        yield place + 1, _with_text(words, at, place + 1, label, place), 0.3


Part = tuple[int, int, tuple[ValueMatch, ...]]


def _lists(words: Words, at: int, column: str) -> Iterator[tuple[int, list[Part], float, str]]:
    """Yield lists of values: end, values, cost, and how they are joined, empty for one value."""
    for end, matches, cost in _single(words, at, column):
        front: list[tuple[int, list[Part], float, set[str]]] = [
            (end, [(at, end, matches)], cost, set())
        ]
        for _ in range(12):
            longer: list[tuple[int, list[Part], float, set[str]]] = []
            for stop, parts, sum_, joints in front:
                joint = next((one for one in ("or", "vs", "and", ",") if one in joints), "")
                yield stop, parts, sum_, joint
                longer += _longer(words, stop, parts, sum_, joints, column)
            front = longer[:4]
            if not front:
                break


def _longer(
    words: Words, stop: int, parts: list[Part], cost: float, joints: set[str], column: str
) -> Iterator[tuple[int, list[Part], float, set[str]]]:
    after, found = stop, set(joints)
    while words.says(after, f"{' '.join(_JOINTS.values())} ,") and after < stop + 2:
        found.add(next((one for one, them in _JOINTS.items() if words.says(after, them)), ","))
        after += 1
    if after == stop:
        return
    start = words.skip(after, "the in from for on at")
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
        values += [typed(match.value, words, name) for match in matches if match.column == name]
    return one_of(name, tuple(dict.fromkeys(values)))


def typed(value: str, words: Words, name: str) -> Scalar:
    """Return a value as a column holds it."""
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
