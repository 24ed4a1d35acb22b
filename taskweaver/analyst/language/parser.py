"""Words of a request: their senses, columns and values, and the columns that they measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from taskweaver.analyst.language.lexicon import (
    DIMENSION_COLUMNS,
    LEXICON,
    LONGEST,
    NUMBER_WORDS,
    Sense,
    Token,
)
from taskweaver.analyst.language.names import (
    is_amount,
    is_named_after,
    name_words,
    singular,
)
from taskweaver.analyst.language.scope import (
    ColumnRef,
    DataScope,
    is_function_word,
    units_of,
)
from taskweaver.analyst.readings import (
    Arithmetic,
    Column,
    Constant,
    Expression,
    columns_of,
)
from taskweaver.tables.files.profile import ColumnProfile, ValueMatch

_SIZES = frozenset("size amount value score".split())
WEAK_NOUNS = frozenset("price rate level score index".split()) | _SIZES
"""Nouns that add nothing to the name of a measured quantity."""
_KINDS = frozenset("type types kind kinds typ typen art arten".split())
INHABITANTS = frozenset("people menschen inhabitants".split())
_COLUMN_COST = (0.0, 0.05, 0.6, 0.9)
_COMMON = frozenset(
    "a an the of is are was were in on at for with from to and or not no i it that this do does "
    "did have has had be been all any by as me my der die das und le la les et de el los y".split()
)
_KIND_ASKED = "which what each every per welche welcher welches jede jeder jedes pro"
_LIGHT_KINDS = {"filler", "row", "person", "thing", "refused"}
_MAX_COLUMN_WORDS, _MAX_VALUE_WORDS = 6, 7


class SenseAt(NamedTuple):
    """Sense of the tokens up to an end."""

    end: int
    sense: Sense


class ColumnAt(NamedTuple):
    """Columns that the tokens up to an end may mean."""

    end: int
    ref: ColumnRef
    cost: float


class ValuesAt(NamedTuple):
    """Values that the tokens up to an end may mean."""

    end: int
    matches: tuple[ValueMatch, ...]
    cost: float


@cache
def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Words:
    """Tokens of a request with all their senses.

    Methods that take several words or kinds take them as a text with spaces between them.

    Attributes:
        scope: Columns and values it is read against.
    """

    def __init__(self, text: str, tokens: list[Token], scope: DataScope) -> None:
        """Look nothing up yet."""
        self.text = text
        self.tokens = tokens
        self.scope = scope
        self.size = len(tokens)
        self._lower = [
            token.lower if token.kind in ("word", "symbol", "number") else None for token in tokens
        ]
        self._senses: dict[int, list[SenseAt]] = {}
        self._columns: dict[int, list[ColumnAt]] = {}
        self._values: dict[int, list[ValuesAt]] = {}

    def lower(self, at: int) -> str:
        """Return a token in lower case; empty outside the request, and for quoted ones."""
        return (self._lower[at] or "") if 0 <= at < self.size else ""

    def raw(self, start: int, end: int) -> str:
        """Return the text of some tokens as written."""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def phrase(self, start: int, end: int) -> str:
        """Return the tokens joined by spaces; quotes are left out."""
        return " ".join(token.text for token in self.tokens[start:end])

    def is_spaced(self, at: int) -> bool:
        """Return whether spaces stand on both sides of a token."""
        token = self.tokens[at]
        return (
            self.text[token.start - 1 : token.start] == self.text[token.end : token.end + 1] == " "
        )

    def senses(self, at: int) -> list[SenseAt]:
        """Return the senses of the phrases that begin at a token, the longest first."""
        if at not in self._senses:
            self._senses[at] = list(self._find_senses(at)) if at < self.size else []
        return self._senses[at]

    def _find_senses(self, at: int) -> Iterator[SenseAt]:
        for end in range(min(at + LONGEST, self.size), at, -1):
            words = self._lower[at:end]
            # A column as written is no sense: "total Count" is not a number of rows.
            is_name = any(
                token.text in self.scope.columns and token.text != token.lower
                for token in self.tokens[max(at, 1) : end]
            )
            if None in words or is_name:
                continue
            joined = " ".join(word for word in words if word)
            for sense in LEXICON.get(joined, ()):
                yield SenseAt(end, sense)

    def of_kind(self, at: int, kinds: str) -> list[SenseAt]:
        """Return the senses of some kinds at a token."""
        return [found for found in self.senses(at) if found.sense.kind in _split(kinds)]

    def is_kind(self, at: int, kinds: str) -> bool:
        """Return whether a phrase of one of some kinds begins at a token."""
        return bool(self.of_kind(at, kinds))

    def columns(self, at: int) -> list[ColumnAt]:
        """Return the columns that the phrases beginning at a token may mean."""
        if at not in self._columns:
            self._columns[at] = list(self._find_columns(at)) if 0 <= at < self.size else []
        return self._columns[at]

    def _find_columns(self, at: int) -> Iterator[ColumnAt]:
        for end in range(min(at + _MAX_COLUMN_WORDS, self.size), at, -1):
            tokens = self.tokens[at:end]
            kinds = {token.kind for token in tokens}
            if kinds & {"symbol", "file", "date"} or (len(tokens) > 1 and "quoted" in kinds):
                continue
            if tokens[0].kind == "number" or self._is_ragged(at, end):
                continue
            ref = self._named(at, end) or self._weakly_named(at, end)
            if ref is not None and end == at + 1:
                ref = self._without_times(ref)
            if ref is not None:
                is_word = end == at + 1 and ref.distance < 3 and is_function_word(tokens[0].lower)
                yield ColumnAt(end, ref, _COLUMN_COST[ref.distance] + (0.4 if is_word else 0.0))

    def _named(self, at: int, end: int) -> ColumnRef | None:
        words = tuple(token.lower for token in self.tokens[at:end])
        return self.scope.column(words, self.phrase(at, end))

    def _weakly_named(self, at: int, end: int) -> ColumnRef | None:
        """Return the column in ``murder rate``, ``price of gas`` or ``engine types``."""
        first, last = self.lower(at), self.lower(end - 1)
        if last in _KINDS and end - at > 1:
            ref = self._named(at, end - 1)
            names = ref.names if ref and ref.distance < 2 else ()
            is_text = len(names) == 1 and self.profile(names[0]).kind == "text"
            return ColumnRef(names, 3, self.phrase(at, end)) if is_text else None
        if last in WEAK_NOUNS and end - at > 1:
            noun, ref = last, self._named(at, end - 1)
        elif first in WEAK_NOUNS and end - at > 2 and self.lower(at + 1) == "of":
            noun, ref = first, self._named(self.skip(at + 2, "the"), end)
        else:
            return None
        if ref is None or len(ref.names) != 1 or ref.distance > 1:
            return None
        is_elsewhere = any(noun in name_words(name) for name in self.scope.columns)
        kind, values = self.profile(ref.names[0]).kind, self.profile(ref.names[0]).distinct
        is_measure = kind == "number" or (
            kind == "integer" and noun in _SIZES and values < self.scope.rows
        )
        if is_elsewhere or not is_measure or singular(ref.phrase.casefold()) in LEXICON:
            return None
        return ColumnRef(ref.names, 3, self.phrase(at, end))

    def _is_ragged(self, at: int, end: int) -> bool:
        """Return whether a phrase begins or ends with a word like ``of``."""
        is_ragged = self.lower(at) in _COMMON or self.lower(end - 1) in _COMMON
        rest = self.phrase(at + 1, end)
        if rest in self.scope.columns and self.lower(at) in name_words(rest):
            return True  # ``max temp_max``
        return end > at + 1 and is_ragged and self.phrase(at, end) not in self.scope.columns

    def _without_times(self, ref: ColumnRef) -> ColumnRef | None:
        """Return columns that a noun may mean: ``orders`` is no part of ``order_date``."""
        names = tuple(name for name in ref.names if self._can_mean(ref, name))
        return ColumnRef(names, ref.distance, ref.phrase) if names else None

    def _can_mean(self, ref: ColumnRef, name: str) -> bool:
        """Return whether a word can mean a column, and is no noun for the rows or for a value."""
        phrase = ref.phrase.casefold().removesuffix("'s")
        word = singular(phrase)
        kinds = {sense.kind for sense in LEXICON.get(phrase, ())}
        is_thing = bool(kinds & {"thing", "person"}) and phrase not in INHABITANTS
        if ref.distance < 2:
            is_rows = is_thing and word in self.scope.nouns and not is_amount(name)
            return not (is_rows and self.profile(name).kind == "integer")
        units, own = units_of(phrase), units_of(" ".join(name_words(name)))
        if units and own and units.isdisjoint(own) and self.is_numeric(name):
            return False  # a weekday is no `day` of 1 to 31
        if name_words(name)[-1:] != (word,) and any(
            match.column != name for match in self.scope.values(ref.phrase)
        ):
            return False
        is_named = self.profile(name).kind != "time" and is_named_after(word, name)
        return is_named or not is_thing

    def values(self, at: int) -> list[ValuesAt]:
        """Return the values that the phrases beginning at a token may mean."""
        if at not in self._values:
            self._values[at] = list(self._find_values(at)) if at < self.size else []
        return self._values[at]

    def _find_values(self, at: int) -> Iterator[ValuesAt]:
        if self.tokens[at].kind in ("file", "symbol"):
            return
        for end in range(min(at + _MAX_VALUE_WORDS, self.size), at, -1):
            if any(token.kind == "file" for token in self.tokens[at:end]):
                continue
            is_one = end == at + 1
            if is_one and self.tokens[at].text == "a" and self.columns(end):  # no grade A
                continue
            text = self.tokens[at].text if is_one else self.raw(at, end)
            matches = self.scope.values(text)
            if not matches and is_one and self.lower(at) != self.tokens[at].text.casefold():
                matches = self.scope.values(self.lower(at))
            if is_one and self.says(at - 1, _KIND_ASKED):  # "which bank" is not called Bank
                matches = tuple(m for m in matches if not self.scope.names_rows(m.column))
            if not matches and is_one and self._may_be_guessed(at):
                matches = self.scope.guessed(self.lower(at))
                if matches:
                    yield ValuesAt(end, matches, _COLUMN_COST[-1])
            elif matches:
                yield ValuesAt(end, matches, 0.1 if matches[0].is_exact else 0.3)

    def _may_be_guessed(self, at: int) -> bool:
        is_named = any(found.end == at + 1 and found.ref.distance < 3 for found in self.columns(at))
        return self.tokens[at].kind == "word" and not is_named

    def is_value(self, at: int) -> bool:
        """Return whether a word, but for the commonest ones, is exactly a value."""
        low = self.lower(at)
        return len(low) > 1 and low not in _COMMON and self._is_exact(at)

    def is_name(self, at: int) -> bool:
        """Return whether a word inside a sentence is a value, written with a capital letter."""
        text = self.tokens[at].text
        is_inside = at > 0 and not self.says(at - 1, ". ? ! :")
        is_capital = text[:1].isupper() and not self.text.isupper()
        may_be = is_inside and is_capital and len(text) > 1
        found = self.values(at) if may_be and not self.is_noun(at) else []
        return any(item.end == at + 1 and item.matches[0].value == text for item in found)

    def is_noun(self, at: int) -> bool:
        """Return whether a word is a noun for the rows, though it is the name of one of them."""
        kinds = {found.sense.kind for found in self.senses(at) if found.end == at + 1}
        columns = {m.column for found in self.values(at) for m in found.matches}
        of_each = all(self.profile(name).distinct * 2 > self.scope.rows for name in columns)
        return bool(kinds & {"person", "thing"}) and of_each

    def may_be_value(self, at: int) -> bool:
        """Return whether a common word after a preposition may be a value, as ``in it``."""
        is_after = self.says(at - 1, "in of from for at by to is")
        return is_after and self._is_exact(at)

    def _is_exact(self, at: int) -> bool:
        return any(found.end == at + 1 and found.matches[0].is_exact for found in self.values(at))

    def is_plain_value(self, at: int, end: int) -> bool:
        """Return whether words can be a value without the name of its column before them."""
        if self.tokens[at].kind in ("quoted", "literal"):
            return True
        text = self.raw(at, end)
        if end - at == 1 and self.is_noun(at):
            return False
        if end - at == 1 and self.is_name(at):
            return True
        if end - at == 1 and len(text) == 1:
            return text.isupper() and text not in ("A", "I")
        kinds = {sense.kind for sense in LEXICON.get(text.casefold(), ())}
        is_common = text.casefold() in _COMMON or bool(kinds - _LIGHT_KINDS)
        return not is_common and not text.replace(".", "").isdigit()

    def number(self, at: int) -> float | None:
        """Return the number at a token, in digits or as a word; None for none."""
        if not 0 <= at < self.size:
            return None
        token = self.tokens[at]
        if token.kind == "number":
            return token.number
        value = NUMBER_WORDS.get(token.lower) if token.kind == "word" else None
        return float(value) if value is not None else None

    def says(self, at: int, words: str) -> bool:
        """Return whether a token is one of some words."""
        return self.lower(at) in _split(words)

    def has(self, words: str) -> bool:
        """Return whether any token is one of some words."""
        return any(self.says(at, words) for at in range(self.size))

    def skip(self, at: int, words: str) -> int:
        """Return the place after any of some words."""
        while self.says(at, words):
            at += 1
        return at

    def profile(self, name: str) -> ColumnProfile:
        """Return the profile of a column."""
        return self.scope.columns[name]

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""
        return self.profile(name).kind in ("number", "integer")


@dataclass(frozen=True, slots=True)
class Operand:
    """Value of a row that a request names.

    Attributes:
        options: Its meanings; more than one if the column is not clear.
        distance: Distance of the words from the name, as of `ColumnRef`.
    """

    options: tuple[Expression, ...]
    phrase: str
    distance: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it may be; empty for arithmetic."""
        return tuple(option.name for option in self.options if isinstance(option, Column))

    @property
    def is_arithmetic(self) -> bool:
        """Whether it is arithmetic of columns."""
        return isinstance(self.options[0], Arithmetic)


Found = tuple[int, Operand, float]
Operator = Literal["+", "-", "*", "/"]
_OPERATORS: dict[str, Operator] = {"+": "+", "-": "-", "*": "*", "/": "/"}


def operands(words: Words, at: int) -> Iterator[Found]:
    """Yield the columns and arithmetic that begin at a token."""
    if at >= words.size:
        return
    for column in words.columns(at):
        ref = column.ref
        options = tuple(Column(name) for name in ref.names)
        yield column.end, Operand(options, ref.phrase, ref.distance), column.cost
    for end, expression, cost in _sums(words, at):
        if isinstance(expression, Arithmetic) and columns_of(expression):
            yield end, Operand((expression,), words.raw(at, end)), cost - 0.2
    yield from _named_forms(words, at)


Part = tuple[int, Expression, float]


def _factors(words: Words, at: int) -> Iterator[Part]:
    at = words.skip(at, "the")
    if words.lower(at) == "(":
        for end, inner, cost in _sums(words, at + 1):
            if words.lower(end) == ")":
                yield end + 1, inner, cost
        return
    for column in words.columns(at):
        numeric = [name for name in column.ref.names if words.is_numeric(name)]
        if len(numeric) == 1:
            yield column.end, Column(numeric[0]), column.cost
    if at < words.size and words.tokens[at].number is not None and not words.tokens[at].is_percent:
        value = words.tokens[at].number or 0.0
        yield at + 1, Constant(value), 0.0


def _operator(words: Words, at: int, allowed: str) -> Iterator[tuple[int, Operator]]:
    if words.lower(at) == "-" and "-" in allowed and words.is_spaced(at):
        yield at + 1, "-"
    for end, sense in words.of_kind(at, "op"):
        if sense.detail in allowed:
            yield words.skip(end, "the by"), _OPERATORS[sense.detail]


def _chain(words: Words, at: int, *, is_product: bool) -> list[Part]:
    level = _factors(words, at) if is_product else iter(_chain(words, at, is_product=True))
    front = list(level)
    found = list(front)
    for _ in range(4):
        longer: list[Part] = []
        for middle, left, cost in front:
            for start, operator in _operator(words, middle, "*/" if is_product else "+-"):
                right = (
                    _factors(words, start) if is_product else _chain(words, start, is_product=True)
                )
                is_compared = words.says(middle, "over less")
                times = words.scope.time_columns
                longer += [
                    (end, Arithmetic(operator, left, value), cost + more)
                    for end, value, more in right
                    if not is_compared or not set(columns_of(value)) <= set(times)
                ]
        found += longer
        front = longer
        if not front:
            break
    return found


def _sums(words: Words, at: int) -> list[Part]:
    return _chain(words, at, is_product=False)


def _named_forms(words: Words, at: int) -> Iterator[Found]:
    """Yield ``ratio of a to b``, ``product of a and b`` and ``sum of a and b`` of columns."""
    joints = {"ratio": ("to", "and", "over"), "product": ("and", "with"), "sumof": ("and",)}
    for stop, sense in words.of_kind(at, "ratio product sumof"):
        for middle, left, cost in _factors(words, words.skip(stop, "of between")):
            if words.lower(middle) not in joints[sense.kind] or not isinstance(left, Column):
                continue
            for end, right, more in _factors(words, middle + 1):
                if isinstance(right, Column) and sense.kind != "sumof":
                    operation = Arithmetic(_OPERATORS[sense.detail], left, right)
                    yield end, Operand((operation,), words.raw(at, end)), cost + more


def dimension_columns(words: Words, dimension: str) -> tuple[str, ...]:
    """Return the numeric columns that hold a dimension, for example ``mass``."""
    wanted = set(DIMENSION_COLUMNS.get(dimension, dimension).split())
    numeric = [name for name in words.scope.columns if words.is_numeric(name)]
    exact = tuple(name for name in numeric if name.casefold() in wanted)
    return exact or tuple(name for name in numeric if wanted & set(name_words(name)))
