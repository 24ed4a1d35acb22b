"""Conditions that compare numbers: of a column, of a dimension, or of two columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taskweaver.analyst.language.lexicon import DIMENSION_WORDS
from taskweaver.analyst.language.names import WORD_TABLES, name_words
from taskweaver.analyst.language.parser import Words, dimension_columns
from taskweaver.analyst.language.scope import ColumnRef
from taskweaver.analyst.language.values import Cond, Found, Option
from taskweaver.analyst.readings import And, Column, Comparator, Comparison, Condition
from taskweaver.analyst.wording.inert import MONTHS

_BE = (
    "is are was were be of has had have value values a the ist est that by which being lies lie "
    "equal"
)
_LINK = "a the of with in an in total their its"
_BEYOND, _SCALED = 10, re.compile(r"\d ?(?:thousand|million|billion|bn)\b", re.IGNORECASE)
_RELATIONS: dict[str, Comparator] = {"before": "<", "after": ">", "since": ">=", "until": "<="}


def comparisons(words: Words, at: int) -> Iterator[Found]:
    """Yield comparisons that begin at a token."""
    if at >= words.size:
        return
    yield from _column_first(words, at)
    yield from _number_first(words, at)
    yield from _dimension_first(words, at)
    yield from _signed(words, at)
    yield from _ages(words, at)
    yield from _by_unit(words, at)


def _by_unit(words: Words, at: int) -> Iterator[Found]:
    """Yield ``over 3 kg`` where the names of columns have a unit of weight."""
    for stop, tests in _tests(words, at):
        units = [unit for unit in _UNITS.get(words.lower(stop), "").split() if unit != "?"]
        named = ((name, name_words(name)) for name in words.scope.columns if units)
        names = tuple(name for name, own in named if len(own) > 1 and _factor(units, own))
        names = tuple(filter(words.is_numeric, names))
        if _in_unit(words, stop, names, tests)[0] > stop:
            yield from _found(words, at, stop, names, tests, 0.3)


def _signed(words: Words, at: int) -> Iterator[Found]:
    """Yield ``negative balance`` and ``positive balance``."""
    operators: dict[str, Comparator] = {"negative": "<", "positive": ">"}
    if words.lower(at) in operators:
        for column in words.columns(at + 1):
            names = tuple(name for name in column.ref.names if words.is_numeric(name))
            if names:
                tests: Tests = [(operators[words.lower(at)], (0.0, False))]
                yield from _found(words, at, column.end, names, tests, column.cost)


def _ages(words: Words, at: int) -> Iterator[Found]:
    """Yield ``under 18`` after a noun for persons, where a column holds ages."""
    place = at - 1
    while words.says(place, "are is were was who aged"):
        place -= 1
    ages = dimension_columns(words, "age")
    if not ages or not words.is_kind(place, "person"):
        return
    for end, tests in _tests(words, at):
        stop = words.skip(end, "years year old")
        if not words.columns(stop) and all(value[0] < 130 for _, value in tests):
            yield from _found(words, at, stop, ages, tests, 0.4)


def _column_first(words: Words, at: int) -> Iterator[Found]:
    for column in words.columns(at):
        names = _comparable(words, column.ref)
        is_relation = words.is_kind(at, "time cmp") and not words.says(column.end, _BE)
        if not names or is_relation:
            continue
        start = words.skip(column.end, _BE)
        is_time = all(_holds_times(words, name) for name in names)
        for stop, tests in _tests(words, start, is_time=is_time):
            if is_time or not _are_years(words, names, tests):
                yield from _found(words, at, stop, names, tests, column.cost)
        if start > column.end and not words.says(start - 1, "a in by"):
            for end, tests in _exactly(words, start, is_last=True):
                if not is_time and _are_years(words, names, tests):
                    continue
                yield from _found(words, at, end, names, tests, column.cost + 0.1)
        yield from _two_columns(words, at, column.end, names)


_UNITS, _SCALES = WORD_TABLES["units"], WORD_TABLES["scales"]
"""Units after a number, with the words of a column's name that state them; empty for any.

``?`` is for a unit that a name need not state. A scale is what a unit measures, and its size.
"""


_TIMES = frozenset("year month day hour minute time week quarter date decade since".split())


def _comparable(words: Words, ref: ColumnRef) -> tuple[str, ...]:
    """Return the columns of numbers that a phrase may mean, without identifiers it only hints."""
    return tuple(
        name
        for name in ref.names
        if words.is_numeric(name) and (ref.distance < 2 or name_words(name)[-1:] != ("id",))
    )


def _are_years(words: Words, names: tuple[str, ...], tests: Tests) -> bool:
    """Return whether numbers are years rather than values of a column: outside of its values."""
    numbers = [value for _, (value, _) in tests]
    if not words.scope.time_columns or not all(1800 <= n <= 2100 for n in numbers):
        return False
    return _are_outside(words, names, numbers)


def _are_outside(words: Words, names: tuple[str, ...], numbers: Sequence[float]) -> bool:
    """Return whether a number is outside of the values of a column."""
    profiles = [words.profile(name) for name in names]
    return any(
        not float(p.low or "nan") <= number <= float(p.high or "nan")
        for p in profiles
        for number in numbers
    )


def _holds_times(words: Words, name: str) -> bool:
    return words.scope.holds_years(name) or bool(_TIMES & set(name_words(name)))


def _in_unit(words: Words, at: int, names: tuple[str, ...], tests: Tests) -> tuple[int, Tests]:
    """Return the place after a unit, and the tests in the unit of the columns.

    A unit that the columns do not have, and that cannot be converted to one of their values,
    is left.
    """
    wanted = _UNITS.get(words.lower(at))
    factors = {_factor(wanted.split(), name_words(name)) for name in names if wanted is not None}
    if len(factors) != 1 or not (factor := factors.pop()):
        return at, tests
    if factor == 1:
        return at + 1, tests
    found = [(test, (round(number * factor, 9), percent)) for test, (number, percent) in tests]
    if _are_outside(words, names, [number for _, (number, _) in found]):
        return at, tests
    words.scope.guesses[words.lower(at)] = f"{factor:g} {name_words(names[0])[-1]}"
    return at + 1, found


def _factor(units: Sequence[str], name: Sequence[str]) -> float:
    """Return the factor from a unit to that of a column's name; 0 where there is none."""
    if not units or not set(units).isdisjoint(name):
        return 1.0
    (kind, size), (other, own) = (
        _SCALES.get(unit, " 0").split(" ") for unit in (units[-1], name[-1])
    )
    if kind and kind == other:
        return float(size) / float(own) if float(own) else 0.0
    return float("?" in units)


def _two_columns(words: Words, at: int, stop: int, names: tuple[str, ...]) -> Iterator[Found]:
    """Yield comparisons of two columns: ``close exceeded the open``."""
    start = words.skip(stop, "is was were are been has had the")
    for place, sense in words.of_kind(start, "cmp"):
        for other in words.columns(words.skip(place, "the its their that of")):
            right = [name for name in other.ref.names if words.is_numeric(name)]
            if len(right) != 1 or len(names) != 1 or right[0] == names[0]:
                continue
            operator: Comparator = sense.detail  # type: ignore[assignment]
            condition = Comparison(Column(names[0]), operator, Column(right[0]))
            yield other.end, Cond((Option("", condition),), words.raw(at, other.end)), other.cost


def _number_first(words: Words, at: int) -> Iterator[Found]:
    """Yield ``more than 6 cylinders``, ``3 bedrooms`` and ``over 30 in temp_max``."""
    for stop, tests in [*_tests(words, at), *_exactly(words, at)]:
        after = stop + (words.lower(stop) in _UNITS and not words.columns(stop))
        start = words.skip(after, _LINK)
        for column in words.columns(start):
            names = _comparable(words, column.ref)
            end, asked = _in_unit(words, stop, names, tests) if after > stop else (stop, tests)
            if end < after:
                continue
            is_exact = tests[0][0] == "==" and not words.is_kind(at, "cmp")
            if is_exact and (start > stop or column.ref.distance > 2):
                continue
            if names:
                cost = column.cost + (0.35 if is_exact else 0.05)
                yield from _found(words, at, column.end, names, asked, cost)


def _dimension_first(words: Words, at: int) -> Iterator[Found]:
    """Yield ``colder than 5`` and ``earn more than 100000``."""
    for end, sign, names in dimensions(words, at):
        if words.says(end, "than als"):
            start = words.skip(end + 1, "or equal to")
            operator: Comparator = ">" if sign == "+" else "<"
            for stop, value in _numbers(words, start):
                if start == end + 1:
                    yield from _found(words, at, stop, names, [(operator, value)], 0.1)
        for last, tests in _tests(words, words.skip(end, "a")):
            yield from _found(words, at, last, names, tests, 0.15)


def dimensions(words: Words, at: int) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield the dimensions stated by a word: end, sign and numeric columns."""
    for name, sign in DIMENSION_WORDS.get(words.lower(at), ()):
        columns = dimension_columns(words, name)
        if columns:
            yield at + 1, sign, columns


Tests = list[tuple[Comparator, tuple[float, bool]]]


def _tests(words: Words, at: int, *, is_time: bool = False) -> Iterator[tuple[int, Tests]]:
    """Yield tests on a number that begin at a token: ``above 5``, ``between 1 and 2``.

    Numbers are compared by ``since`` and ``before`` only if they are times.
    """
    for stop, sense in words.of_kind(at, "cmp"):
        for end, value in _numbers(words, words.skip(stop, "the of")):
            operator: Comparator = sense.detail  # type: ignore[assignment]
            yield end, [(operator, value)]
    for stop, sense in words.of_kind(at, "time"):
        if sense.detail in _RELATIONS:
            for end, value in _numbers(words, stop):
                if is_time:
                    yield end, [(_RELATIONS[sense.detail], value)]
    yield from _between(words, at, is_time=is_time or not words.scope.time_columns)
    for end, value in _numbers(words, at):
        for stop, sense in words.of_kind(end, "tail"):
            operator = sense.detail  # type: ignore[assignment]
            if words.lower(end) != "on" or is_time:
                yield stop, [(operator, value)]


def _between(words: Words, at: int, *, is_time: bool) -> Iterator[tuple[int, Tests]]:
    openings = [found.end for found in words.of_kind(at, "between")]
    if is_time:
        froms = (found for found in words.of_kind(at, "time") if found.sense.detail == "from")
        openings += [found.end for found in froms]
    lows = [(end, low) for stop in openings for end, low in _numbers(words, stop)]
    for middle, low in lows:
        if words.says(middle, "and to - \N{EN DASH} und et y"):
            for end, high in _numbers(words, middle + 1):
                if low[0] <= high[0]:
                    yield end, [(">=", low), ("<=", high)]


def _exactly(words: Words, at: int, *, is_last: bool = False) -> Iterator[tuple[int, Tests]]:
    for end, value in _numbers(words, words.skip(at, "exactly")):
        is_part = words.is_kind(end, "tail op") or (is_last and words.columns(end))
        if not is_part:
            yield end, [("==", value)]


def _numbers(words: Words, at: int) -> Iterator[tuple[int, tuple[float, bool]]]:
    sign = 1.0
    if words.says(at, "- \N{MINUS SIGN} minus"):
        sign, at = -1.0, at + 1
    value = words.number(at)
    if value is not None and words.lower(at + 1) not in MONTHS:
        is_percent = words.tokens[at].is_percent or words.lower(at + 1) == "percent"
        end = at + 2 if is_percent and not words.tokens[at].is_percent else at + 1
        yield end, (sign * value, is_percent)


def _found(
    words: Words, at: int, stop: int, names: tuple[str, ...], tests: Tests, cost: float
) -> Iterator[Found]:
    """Yield the condition of tests with the unit after them.

    ``100 billion`` is none where it is beyond all values: those may be numbers of billions.
    """
    end, tests = _in_unit(words, stop, names, tests)
    phrase = words.raw(at, end)
    highest = max(float(words.profile(name).high or "inf") for name in names)
    is_beyond = all(number > _BEYOND * highest for _, (number, _) in tests)
    if not (is_beyond and _SCALED.search(phrase)):
        options = tuple(Option(name, _condition(words, name, tests)) for name in names)
        yield end, Cond(options, phrase), cost


def _condition(words: Words, name: str, tests: Tests) -> Condition:
    parts = tuple(
        Comparison(Column(name), operator, _scaled(words, name, value)) for operator, value in tests
    )
    return parts[0] if len(parts) == 1 else And(parts)


def _scaled(words: Words, name: str, value: tuple[float, bool]) -> int | float:
    """Return a number in the unit of a column: 20 % is 0.2 where the column holds fractions."""
    number, is_percent = value
    if is_percent:
        try:
            high = float(words.profile(name).high)
        except ValueError:
            high = 100.0
        number = round(number / 100, 12) if high <= 1.5 else number
    return int(number) if float(number).is_integer() else number
