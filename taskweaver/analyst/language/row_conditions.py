"""Conditions on rows: phrases of columns, comparators, values and times, joined and negated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from taskweaver.analyst.language.comparisons import comparisons
from taskweaver.analyst.language.parser import Words
from taskweaver.analyst.language.times import Recurring, TimeBound, When, times
from taskweaver.analyst.language.values import (
    AND,
    OR,
    Cond,
    Found,
    Option,
    as_condition,
    both,
    explained,
    in_parts,
    shares_column,
    typed,
    value_conditions,
)
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    Latest,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    columns_in,
)

_AND = f"{AND} , but"
_NO_PARTS: Mapping[str, str] = {}
_LACKING = "without no with having ohne sans sin lacking kein keine keinen"
_HAVING = "with has have had having"
_ENDS = ("", "?", "per", "by")
_LEADING = "the in on at from with are is where that had who have"


class Conditions:
    """Conditions at the places of a request."""

    def __init__(self, words: Words) -> None:
        """Look nothing up yet."""
        self.words = words
        self._plain: dict[int, list[Found]] = {}
        self._full: dict[int, list[Found]] = {}

    def at(self, at: int) -> list[Found]:
        """Return the conditions that begin at a token, each with its end and cost."""
        if at not in self._full:
            single = [*self._simple(at), *self._negated(at)]
            self._full[at] = _distinct([*single, *self._alternatives(single)])
        return self._full[at]

    def _simple(self, at: int) -> list[Found]:
        if at not in self._plain:
            found = [
                *value_conditions(self.words, at),
                *comparisons(self.words, at),
                *self._times(at),
                *self._missing(at),
            ]
            found += explained(self.words, at, found)
            self._plain[at] = _distinct(found)
        return self._plain[at]

    def _times(self, at: int) -> Iterator[Found]:
        """Yield restrictions of time, after the name of their column or without it."""
        if at >= self.words.size:
            return
        scope = self.words.scope
        yield from self._times_of(at, at, scope.time_columns, 0.2, scope.date_parts)
        for column in self.words.columns(at):
            named = tuple(
                name
                for name in column.ref.names
                if self.words.profile(name).kind == "time" or scope.holds_years(name)
            )
            if len(named) != len(column.ref.names):
                continue
            start = self.words.skip(column.end, "is was are were = == : falls")
            yield from self._times_of(at, start, named, column.cost)

    def _times_of(
        self,
        at: int,
        start: int,
        columns: tuple[str, ...],
        cost: float,
        parts: Mapping[str, str] = _NO_PARTS,
    ) -> Iterator[Found]:
        for end, when in times(self.words, start):
            own = in_parts(when, parts)
            names = sorted(columns_in(own)) if own else []
            options = self._time_options(when, columns)
            options = [Option(names[0] if len(names) == 1 else "", own)] if own else options
            if isinstance(when, TimeBound) and when.relation == "from":
                alone = self._time_options(when.period, columns)
                options = [replace(one, column="since") for one in options]
                options += [replace(one, column="in") for one in alone]
            if options:
                phrase = self.words.raw(at, end)
                is_list = isinstance(when, Recurring) and len(when.values) > 1
                yield end, Cond(tuple(options), phrase, is_time=True, is_span=is_list), cost

    def _time_options(self, when: When, columns: tuple[str, ...]) -> list[Option]:
        kinds = [(name, self.words.profile(name).kind == "time") for name in columns]
        found = ((name, as_condition(when, name, is_time=is_time)) for name, is_time in kinds)
        return [Option(name, condition) for name, condition in found if condition]

    def _missing(self, at: int) -> Iterator[Found]:
        """Yield conditions on missing values."""
        words = self.words
        for column in words.columns(at):
            start = words.skip(column.end, "is are was were value values has been")
            for end, sense in words.of_kind(start, "missing"):
                if start == column.end and sense.detail == "present":
                    continue
                yield end, self._of_missing(column.ref.names, at, end, sense.detail), column.cost
        yield from self._present(at)
        for stop, sense in words.of_kind(at, "missing"):
            start = words.skip(stop, "values value of in for the a entries data")
            for column in words.columns(start):
                found = self._of_missing(column.ref.names, at, column.end, sense.detail)
                yield column.end, found, column.cost + 0.1
            if words.says(stop, "values value data entries cells fields"):
                yield stop + 1, self._of_missing(("",), at, stop + 1, sense.detail), 0.3

    def _present(self, at: int) -> Iterator[Found]:
        """Yield ``with a phone`` at the end of a request, where some have none."""
        words = self.words
        if words.says(at, _HAVING) and words.says(at + 1, "a an any some"):
            for column in words.columns(at + 2):
                are_missing = all(words.profile(name).missing for name in column.ref.names)
                if are_missing and words.lower(column.end) in _ENDS:
                    found = self._of_missing(column.ref.names, at, column.end, "present")
                    yield column.end, found, column.cost

    def _of_missing(self, names: tuple[str, ...], at: int, end: int, detail: str) -> Cond:
        def condition(name: str) -> Condition:
            return Missing(name) if detail == "missing" else Not(Missing(name))

        options = tuple(Option(name, condition(name)) for name in names)
        return Cond(options, self.words.raw(at, end))

    # -- negation and alternatives ----------------------------------------------------------------

    def _negation(self, found: Cond, phrase: str, unused: tuple[str, ...]) -> Cond:
        options = tuple(Option(one.column, self._not(one)) for one in found.options)
        return replace(found, options=options, phrase=phrase, is_negative=True, is_list=False,
                       unused=(*found.unused, *unused))  # fmt: skip

    def _not(self, option: Option) -> Condition:
        """Return the negation of a condition; of a column of yes and no, the other value."""
        name, words = option.column, self.words
        yes = words.scope.flag_value(name) if name else None
        no = words.scope.no_value(name) if name else None
        if not isinstance(yes, str) or no is None:
            return _not(option.condition)
        is_yes = option.condition == Comparison(Column(name), "==", typed(yes, words, name))
        other = Comparison(Column(name), "==", typed(no, words, name))
        return other if is_yes else _not(option.condition)

    def _negated(self, at: int) -> Iterator[Found]:
        words = self.words
        for stop, sense in words.of_kind(at, "neg"):
            if sense.detail == "neither":
                yield from self._neither(at, stop)
                continue
            for start, cost, unused in self._after_negation(stop):
                is_plain = words.lower(stop - 1).endswith(("not", "n't", "never"))
                is_one = words.lower(at) == "non"
                listed = self._simple(start) if is_one else self._listed(start, is_plain=is_plain)
                for end, found, more in listed:
                    if found.is_negative:
                        continue
                    yield end, self._negation(found, words.raw(at, end), unused), cost + more
            yield from self._none_of(at, stop)

    def _after_negation(self, at: int) -> Iterator[tuple[int, float, tuple[str, ...]]]:
        """Yield the places where the negated condition may begin, words skipped before it."""
        words = self.words
        place, cost = at, 0.0
        unused: tuple[str, ...] = ()
        for _ in range(5):
            yield place, cost, unused
            is_light = words.is_kind(place, "filler row person thing by link")
            is_both = words.lower(place) == "both"
            if is_both or (is_light and not words.says(place, ". ? ; :")):
                place, cost = place + 1, cost + 0.02
            elif place < words.size and not unused and _is_unknown(words, place):
                unused, place, cost = (words.tokens[place].text,), place + 1, cost + 1.0
            elif words.scope.is_row(words.lower(place)):
                place, cost = place + 1, cost + 0.02
            else:
                return

    def _neither(self, at: int, stop: int) -> Iterator[Found]:
        words = self.words
        start = words.skip(stop, "in on from at the is are")
        for middle, first, cost in self._simple(start):
            if not words.is_kind(middle, "nor or"):
                continue
            after = words.skip(middle + 1, "in on from at the")
            for end, second, more in self._simple(after):
                joined = _join(first, second, words.raw(at, end), Or)
                if joined is not None:
                    yield end, self._negation(joined, words.raw(at, end), ()), cost + more

    def _none_of(self, at: int, stop: int) -> Iterator[Found]:
        """Yield ``without any precipitation``: zero in a numeric column, missing in others."""
        words = self.words
        if not words.says(stop - 1, _LACKING):
            return
        start = words.skip(stop, "any a")
        for column in words.columns(start):
            if len(column.ref.names) != 1 or words.is_kind(column.end, "cmp"):
                continue
            name = column.ref.names[0]
            is_mostly = words.profile(name).missing * 2 > words.scope.rows
            is_missing = words.profile(name).missing > 0
            is_zero = words.is_numeric(name) and _holds_zero(words, name) and not is_mostly
            if is_missing and not is_zero:
                missing = Cond((Option(name, Missing(name)),), words.raw(at, column.end))
                yield column.end, missing, column.cost + 0.2
            elif is_zero and not is_missing:
                zero = Comparison(Column(name), "==", 0)
                condition = Cond((Option(name, zero),), words.raw(at, column.end), is_negative=True)
                yield column.end, condition, column.cost + 0.2

    def _listed(self, at: int, *, is_plain: bool = False) -> list[Found]:
        """Return conditions that one negation covers: single ones, runs and lists.

        A plain ``not`` covers one condition of ``not A and B``; ``without`` covers both.
        """
        found = list(self._simple(at))
        for middle, first, cost in list(found):
            if first.is_time:
                continue
            for end, second, more in self._simple(middle):
                if second.is_time:
                    continue
                joined = _join(first, second, "", And)
                if joined is not None and not self.words.is_kind(middle, "filler and or"):
                    found.append((end, joined, cost + more))
            for end, second, more in self._beside(middle):
                kind = self._joint(at, middle, first, second, is_plain=is_plain)
                either = _join(first, second, "", kind) if kind else None
                if either is not None and not second.is_time:
                    found.append((end, either, cost + more - 0.3))
        return found

    def _beside(self, middle: int) -> list[Found]:
        """Return the conditions after a conjunction that have no negation of their own."""
        if not self.words.says(middle, f"{_AND} {OR}"):
            return []
        after = self.words.skip(middle + 1, f"{_AND} {OR} the in from on with")
        return [] if self.words.is_kind(after, "neg") else self._simple(after)

    def _joint(
        self, at: int, middle: int, first: Cond, second: Cond, *, is_plain: bool
    ) -> type[And | Or] | None:
        """Return how a list after a negation is joined: any of it, or all if it is in brackets.

        None for ``and`` that adds a condition on another column, outside of a plain ``not``, and
        for a comma before one.
        """
        if shares_column(first, second):
            return Or
        if self.words.lower(middle) == "," and not self.words.says(middle + 1, OR):
            return None
        before = at - 1
        while self.words.says(before, "a the in from have"):
            before -= 1
        is_and = self.words.says(middle, _AND)
        if is_and and self.words.says(before, "( both"):
            return And
        return None if is_and and is_plain else Or

    def _alternatives(self, first: list[Found]) -> list[Found]:
        """Return conditions joined by ``or``, and lists of years joined by ``and``."""
        found: list[Found] = []
        front = list(first)
        for _ in range(3):
            longer: list[Found] = []
            for middle, left, cost in front:
                longer += self._joined(middle, left, cost)
            found += longer
            front = longer
        return found

    def _joined(self, middle: int, left: Cond, cost: float) -> Iterator[Found]:
        words = self.words
        is_or = words.says(middle, OR)
        if not is_or and not words.says(middle, _AND):
            return
        after = words.skip(middle + 1, f"{_AND} {OR}")
        start = words.skip(after, _LEADING)
        is_or = is_or or any(words.says(place, OR) for place in range(middle, after))
        for end, right, more in [*self._simple(start), *(self._negated(start) if is_or else ())]:
            if left.is_negative and not right.is_negative and shares_column(left, right):
                continue
            phrase = (
                left.phrase + words.text[words.tokens[middle].start - 1 : words.tokens[end - 1].end]
            )
            is_list = not is_or and _are_periods(left, right)
            joined = _join(left, right, phrase, Or) if is_or or is_list else None
            if joined is not None:
                is_time = left.is_time and right.is_time
                yield end, replace(joined, is_list=is_list, is_time=is_time), cost + more - 0.3


def _are_periods(left: Cond, right: Cond) -> bool:
    """Return whether two times are periods or years, so that ``and`` lists them."""
    conditions = [option.condition for cond in (left, right) for option in cond.options]
    is_calendar = any(isinstance(condition, OnCalendar | Latest) for condition in conditions)
    is_part = any(not option.column for cond in (left, right) for option in cond.options)
    return left.is_time and right.is_time and not is_calendar and not is_part


def _join(left: Cond, right: Cond, phrase: str, kind: type[And | Or]) -> Cond | None:
    """Join two conditions; ambiguous columns are settled by a shared one."""
    pairs = [
        (one, other)
        for one in left.options
        for other in right.options
        if len(left.options) == len(right.options) == 1 or one.column == other.column
    ]
    if not pairs:
        return None
    options = tuple(
        Option(
            one.column if one.column == other.column else "",
            either(one.condition, other.condition)
            if kind is Or
            else both(one.condition, other.condition),
        )
        for one, other in pairs
    )
    return Cond(options, phrase or left.phrase + " " + right.phrase,
                is_negative=left.is_negative or right.is_negative,
                unused=(*left.unused, *right.unused))  # fmt: skip


def either(left: Condition, right: Condition) -> Condition:
    """Return a disjunction; values of one column become a set."""
    sets = [_as_set(condition) for condition in (left, right)]
    if sets[0] and sets[1] and sets[0].column == sets[1].column:
        return OneOf(sets[0].column, tuple(dict.fromkeys((*sets[0].values, *sets[1].values))))
    parts: tuple[Condition, ...] = ()
    for condition in (left, right):
        parts += condition.parts if isinstance(condition, Or) else (condition,)
    return Or(parts)


def _as_set(condition: Condition) -> OneOf | None:
    if isinstance(condition, OneOf):
        return condition
    if (
        isinstance(condition, Comparison)
        and condition.operator == "=="
        and isinstance(condition.left, Column)
        and isinstance(condition.right, str | int | bool)
    ):
        return OneOf(condition.left.name, (condition.right,))
    return None


def _not(condition: Condition) -> Condition:
    if isinstance(condition, Not):
        return condition.part
    if isinstance(condition, Comparison) and condition.operator == "==":
        return replace(condition, operator="!=")
    return Not(condition)


def _holds_zero(words: Words, name: str) -> bool:
    try:
        return float(words.profile(name).low) <= 0 <= float(words.profile(name).high)
    except ValueError:
        return False


def _is_unknown(words: Words, at: int) -> bool:
    token = words.tokens[at]
    is_word = token.kind == "word" and token.text.islower()
    return is_word and not (words.senses(at) or words.columns(at) or words.values(at))


def _distinct(found: list[Found]) -> list[Found]:
    """Return the cheapest of equal conditions."""
    best: dict[tuple[int, tuple[Option, ...]], Found] = {}
    for entry in found:
        key = (entry[0], entry[1].options)
        if key not in best or entry[2] < best[key][2]:
            best[key] = entry
    return sorted(best.values(), key=lambda entry: entry[2])[:8]
