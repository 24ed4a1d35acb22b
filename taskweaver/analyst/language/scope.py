"""Tables and joins that a request may be about, and the words that name their parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations

from taskweaver.analyst.language.lexicon import LEXICON, LEXICON_WORDS, is_unusual
from taskweaver.analyst.language.names import (
    SHORT,
    compound,
    core_words,
    corrected,
    equivalents,
    is_abbreviated,
    is_form,
    is_in_value,
    is_misspelled,
    is_typed_for,
    is_word_of,
    meanings,
    means_value,
    name_words,
    shortens,
    singular,
    states,
)
from taskweaver.analyst.language.row_nouns import forms_of, nouns_of
from taskweaver.analyst.readings import GroupKey, TableSource
from taskweaver.tables.files.profile import ColumnProfile, TableId, TableProfile, ValueMatch
from taskweaver.utils.text import folded

_YEAR_WORDS = frozenset("year yr jahr année annee año ano år год 年".split())
_JOINTS = ("of", "the", "in")
_NOUN_KINDS = frozenset("row person thing refused missing unit".split())
_SHORTEST_CHARS, _MOST_GUESSED, _LONG = 3, 60, 100
LABEL_WORDS = ("name", "title", "label")
_YES = "yes true y 1 1.0 ja oui sí si".split()
_NO = "no false n 0 0.0 nein non nei nej".split()


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """Columns that some words may mean.

    Attributes:
        names: The columns, all equally near.
        distance: 0 for the exact name, 1 for its words, 2 for a part of it, 3 for a typing error.
    """

    names: tuple[str, ...]
    distance: int
    phrase: str


@dataclass
class DataScope:
    """Columns and values of a table or of a join of tables.

    Attributes:
        source: The tables as a part of the reading.
        nouns: Words, in the singular, that the file or table is named after.
        side_nouns: The same of the tables that are joined to the first.
        other_nouns: The same of tables that are not read.
        choices: Options the user has chosen before, by the words that were unclear.
        guesses: Values that were taken for words in other words, by these words.
    """

    source: TableSource
    tables: tuple[TableProfile, ...]
    nouns: frozenset[str] = frozenset()
    side_nouns: frozenset[str] = frozenset()
    other_nouns: frozenset[str] = frozenset()
    choices: Mapping[str, str] = field(default_factory=dict)
    guesses: dict[str, str] = field(default_factory=dict)
    _refs: dict[tuple[str, ...], ColumnRef | None] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, ColumnProfile]:
        """The columns by name."""
        found: dict[str, ColumnProfile] = {}
        for table in self.tables:
            for column in table.columns:
                found.setdefault(column.name, column)
        return found

    @cached_property
    def rows(self) -> int:
        """The number of rows, of the longest table."""
        return max(table.rows for table in self.tables)

    @cached_property
    def time_columns(self) -> tuple[str, ...]:
        """The columns that hold times, or years as integers."""
        times = tuple(name for name, column in self.columns.items() if column.kind == "time")
        return times or self.year_columns

    @cached_property
    def year_columns(self) -> tuple[str, ...]:
        """The integer columns that hold years."""
        return tuple(
            name
            for name, column in self.columns.items()
            if column.kind == "integer" and _YEAR_WORDS & set(name_words(name)) and _in_era(column)
        )

    @cached_property
    def date_parts(self) -> dict[str, str]:
        """The integer columns of the parts of a date, by part; none without one of months."""
        found = {
            part: name
            for part in "year month day".split()
            for name, column in self.columns.items()
            if column.kind == "integer" and part in units_of(" ".join(name_words(name)))
        }
        is_month = "month" in found and int(self.columns[found["month"]].high or 13) <= 12
        return found if is_month else {}

    def own_period(self, unit: str) -> str:
        """Return the column of a period that the file states itself beside its times, or empty.

        Months of several years are not told apart by the number of the month.
        """
        years = [name for name in self.year_columns if _YEAR_WORDS.issuperset(name_words(name))]
        if unit == "year":
            return years[0] if len(years) == 1 else ""
        is_one_year = not years or self.columns[years[0]].distinct == 1
        return self.date_parts.get(unit, "") if is_one_year else ""

    @cached_property
    def day_keys(self) -> tuple[GroupKey, ...]:
        """The keys of whole days where a column holds days of the month; none elsewhere.

        Times of day may be those of another zone: their days are not used.
        """
        if "day" not in self.date_parts:
            return ()
        times = [column for column in self.columns.values() if column.kind == "time"]
        if len(times) == 1 and {times[0].low[11:], times[0].high[11:]} <= {"", "00:00:00"}:
            return (GroupKey(times[0].name, unit="day"),)
        return tuple(map(GroupKey, self.date_parts.values()))

    def is_row(self, word: str) -> bool:
        """Return whether a noun in lower case stands for the rows of the table."""
        return not self.nouns.isdisjoint(forms_of(word))

    def holds_years(self, name: str) -> bool:
        """Return whether an integer column may hold years."""
        return self.columns[name].kind == "integer" and _in_era(self.columns[name])

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Names of columns and values that cannot be found by their words."""
        names = [name for name in self.columns if is_unusual(name)]
        values = [match for match in self._value_index if is_unusual(match)]
        return (*names, *values)

    @cached_property
    def _value_index(self) -> dict[str, tuple[ValueMatch, ...]]:
        found: dict[str, dict[tuple[str, str], ValueMatch]] = {}
        for column in self.columns.values():
            if column.kind in ("text", "flag"):
                for value in column.values or ():
                    match = ValueMatch(column.name, value)
                    found.setdefault(folded(value), {})[column.name, value] = match
                for text, value in column.spellings.items():
                    match = ValueMatch(column.name, value)
                    found.setdefault(folded(text), {})[column.name, value] = match
        for table in self.tables:
            for words, matches in table.matches.items():
                for match in matches:
                    if match.column in self.columns:
                        known = found.setdefault(folded(words), {})
                        known.setdefault((match.column, match.value), match)
        return {words: tuple(matches.values()) for words, matches in found.items()}

    def values(self, text: str) -> tuple[ValueMatch, ...]:
        """Return the values that a text may mean: exact ones, else forms of them."""
        key = folded(text)
        found = self._value_index.get(key, ())
        if any(sense.kind == "filler" for sense in LEXICON.get(text, ())):  # no title `Made`
            return tuple(match for match in found if match.value == text)
        exact = tuple(match for match in found if match.is_exact)
        if exact:
            written = tuple(match for match in exact if match.value == text.strip())
            columns = {match.column for match in written}
            return written or exact if len(columns) == len({m.column for m in exact}) else exact
        plurals = (singular(key), key.removesuffix("s"))  # of a kind, and no name of one row
        found = tuple(
            match
            for match in found
            if folded(match.value) not in plurals or not self.names_rows(match.column)
        )
        same = tuple(equivalents(key, self.columns)) if not found else ()
        if same:
            return same
        one = () if found else next(filter(None, map(self._value_index.get, plurals)), ())
        one = tuple(match for match in one if not self.names_rows(match.column))
        if one and key not in self.columns:
            return tuple(ValueMatch(match.column, match.value, False) for match in one)
        if found or key in LEXICON_WORDS or " " in key:
            return found
        words = {key, singular(key)}
        return tuple(
            ValueMatch(match.column, match.value, False)
            for value, matches in self._value_index.items()
            if any(value == word or is_form(word, value) for word in words)
            for match in matches
            if match.is_exact
        )

    def guessed(self, word: str) -> tuple[ValueMatch, ...]:
        """Return the value that a word states otherwise: in a synonym, in short, misspelled."""
        spelled = (word, singular(word))
        is_noun = not self.nouns.isdisjoint(meanings(word).union(spelled))
        if is_noun or len(word) <= _SHORTEST_CHARS or any(map(is_function_word, spelled)):
            return ()
        values = [
            ValueMatch(column.name, value, False)
            for column in self.columns.values()
            if column.kind == "text" and column.distinct <= _MOST_GUESSED
            for value in column.values or ()
        ]
        kinds = {sense.kind for one in spelled for sense in LEXICON.get(one, ())}
        within = () if kinds & {"thing", "person", "row"} else (is_in_value,)
        for states_it in (means_value, shortens, *within, is_typed_for):
            found = tuple(match for match in values if states_it(word, folded(match.value)))
            if len(found) == 1:
                self.guesses[word] = found[0].value
            if found:
                return found if len(found) == 1 else ()
        return ()

    def names_rows(self, name: str) -> bool:
        """Return whether a column of a long table has another value in most rows."""
        distinct = self.columns[name].distinct
        return distinct > _LONG and distinct * 2 > self.rows

    def column(self, words: tuple[str, ...], phrase: str) -> ColumnRef | None:
        """Return the columns that words (in lower case; as written) may mean; None for none."""
        if words not in self._refs:
            self._refs[words] = self._find_column(words, phrase)
        found = self._refs[words]
        choice = self.choices.get(phrase.casefold())
        if found is not None and choice in found.names:
            return ColumnRef((choice,), 0, phrase)
        return found

    def _find_column(self, words: tuple[str, ...], phrase: str) -> ColumnRef | None:
        exact = [name for name in self.columns if name.strip() == phrase.strip()]
        if not exact:
            exact = [name for name in self.columns if name.casefold() == phrase.casefold().strip()]
        if exact:
            return ColumnRef((*exact, *self._duplicates(exact[0])), 0, phrase)
        is_computed = any(sense.kind == "fn" for sense in LEXICON.get(words[0], ()))
        content = [word for word in words if word not in _JOINTS or is_computed] or words
        singulars = tuple(
            singular(part) for word in content for part in name_words(word) or (word,)
        )
        return (
            self._by_words(singulars, phrase)
            or self._by_parts(words, singulars, phrase)
            or self._by_meaning(words, singulars, phrase)
            or self._misspelled(words, singulars, phrase)
        )

    def _duplicates(self, name: str) -> list[str]:
        """Return the columns that were renamed because they have the same name."""
        numbered = re.compile(re.escape(name) + r"[._]\d{1,2}")
        found = [other for other in self.columns if numbered.fullmatch(other)]
        plain = re.escape(name) + r"[._]?\d{1,2}"
        return found if len(found) == sum(1 for o in self.columns if re.fullmatch(plain, o)) else []

    def _by_words(self, words: tuple[str, ...], phrase: str) -> ColumnRef | None:
        joined = "".join(words)
        for spelled in (name_words, core_words):
            same = [
                name
                for name in self.columns
                if spelled(name) == words or "".join(spelled(name)) == joined
            ]
            if same:
                return ColumnRef(tuple(same), 1, phrase)
        return None

    def _by_parts(
        self, words: tuple[str, ...], singulars: tuple[str, ...], phrase: str
    ) -> ColumnRef | None:
        if all(is_function_word(word) for word in words):
            return None
        if len(phrase) < _SHORTEST_CHARS and phrase.casefold() not in SHORT:
            return None
        parts = [
            name
            for name in self.columns
            if len(singulars) <= len(name_words(name))  # a second "max" is a function
            and all(any(is_word_of(word, part) for part in name_words(name)) for word in singulars)
        ]
        full = [name for name in parts if len(core_words(name)) == len(singulars)]
        if parts:
            return ColumnRef(tuple(full or parts), 2, phrase)
        short = [name for name in self.columns if is_abbreviated(singulars, core_words(name))]
        if short:
            return ColumnRef(tuple(short), 2, phrase)
        joined = "".join(singulars)
        starts = {"".join(singulars[:end]) for end in range(1, len(singulars))}
        longer = [
            name
            for name in self.columns
            if "".join(name_words(name)) not in starts
            and _is_shortened("".join(name_words(name)), joined)
        ]
        if longer:
            return ColumnRef(tuple(longer), 2, phrase)
        return None

    def _by_meaning(
        self, words: tuple[str, ...], singulars: tuple[str, ...], phrase: str
    ) -> ColumnRef | None:
        """Return the columns whose names state words in other words or in short."""
        kinds = {sense.kind for word in singulars for sense in LEXICON.get(word, ())}
        if kinds - _NOUN_KINDS or len(phrase) < _SHORTEST_CHARS:
            return None
        is_compound = len(singulars) == 1 and not meanings(words[0])
        plain = words if words == ("people",) else singulars
        asked = (compound(words[0]) if is_compound else ()) or plain
        stated = {name: _stated(name, asked) for name in self.columns}
        names = [name for name, count in stated.items() if count]
        full = [name for name in names if stated[name] == len(core_words(name))]
        return ColumnRef(tuple(full or names), 3, phrase) if names else None

    def _misspelled(
        self, words: tuple[str, ...], singulars: tuple[str, ...], phrase: str
    ) -> ColumnRef | None:
        if any(word in LEXICON for word in words) or len(phrase) < 3:
            return None
        joined = "".join(singulars)
        for word in corrected(words[0]) if len(words) == 1 else ():
            if meant := self._by_meaning((word,), (word,), phrase):
                return meant
        wrong = [
            name
            for name in self.columns
            if any(
                is_misspelled(asked, "".join(spelled(name)))
                for asked in {joined, "".join(words)}
                for spelled in (name_words, core_words)
            )
        ]
        return ColumnRef(tuple(wrong), 3, phrase) if wrong else None

    def flag_value(self, name: str) -> str | bool | None:
        """Return the value of a column of two values that means yes; None for other columns."""
        column = self.columns[name]
        values = column.values or ()
        if column.kind == "flag" and not values:
            return True
        if column.kind == "integer" and (column.distinct, column.low, column.high) == (2, "0", "1"):
            return "1"
        if column.kind not in ("flag", "text", "integer") or not 1 <= len(values) <= 2:
            return None
        yes = [value for value in values if value.casefold() in _YES]
        is_pair = all(value in yes or value.casefold() in _NO for value in values)
        return yes[0] if len(yes) == 1 and is_pair else None

    def no_value(self, name: str) -> str | None:
        """Return the value of a column of two values that means no; None for other columns."""
        column = self.columns[name]
        if self.flag_value(name) is None or column.kind == "flag":
            return None
        found = [value for value in column.values or ("0",) if value.casefold() in _NO]
        return found[0] if len(found) == 1 else None

    @cached_property
    def label(self) -> str | None:
        """The text column that names the rows; None for none."""
        texts = [c for c in self.columns.values() if c.kind == "text" and c.distinct > 1]
        for word in LABEL_WORDS:
            named = [c for c in texts if word in name_words(c.name)]
            exact = [c for c in named if len(name_words(c.name)) == 1]
            if len(exact or named) == 1:
                return (exact or named)[0].name
        unique = [c for c in texts if c.distinct == self.rows and not c.missing]
        return unique[0].name if len(unique) == 1 else None


def units_of(phrase: str) -> set[str]:
    """Return the units of time that a phrase in lower case states."""
    return {sense.detail for sense in LEXICON.get(phrase, ()) if sense.kind == "unit"}


def _in_era(column: ColumnProfile) -> bool:
    numbers = [re.sub(r"\.0$", "", text) for text in (column.low, column.high)]
    return all(number.isdigit() and 1000 <= int(number) <= 2200 for number in numbers)


def _stated(name: str, asked: tuple[str, ...]) -> int:
    """Return the number of words of a name that state all the words asked; 0 if some are not."""
    parts = name_words(name)
    phrases = [tuple(word.split("_")) for word in meanings("_".join(asked)) if "_" in word]
    for phrase in phrases:
        if set(phrase) <= set(parts) or any(states(part, phrase) for part in parts):
            return len(parts)
    if len(asked) > 1 and any(states(part, asked) for part in parts):
        return 1
    found = [{part for part in parts if states(part, (word,))} for word in asked]
    return len(set().union(*found)) if all(found) else 0


def _is_shortened(name: str, asked: str) -> bool:
    return len(name) >= 6 and 0 < len(asked) - len(name) <= 4 and asked.startswith(name)


def is_function_word(word: str) -> bool:
    """Return whether a word has a meaning of its own in the language, a noun apart."""
    senses = LEXICON.get(word, ())
    return any(sense.kind not in "row person thing refused missing".split() for sense in senses)


_MAX_TABLES = 12


@dataclass(frozen=True, slots=True)
class Wanted:
    """Files and parts that a request names.

    Attributes:
        files: Files it certainly names.
        parts: Parts of files it certainly names.
        likely: Files its words may name.
    """

    files: tuple[str, ...] = ()
    parts: tuple[TableId, ...] = ()
    likely: tuple[str, ...] = ()


def scopes(
    tables: Mapping[TableId, TableProfile], wanted: Wanted, choices: Mapping[str, str]
) -> list[DataScope]:
    """Return a scope for each single table that a request may be about."""
    nouns = {id: nouns_of(table) for id, table in tables.items()}
    return [
        DataScope(
            TableSource((id,)),
            (table,),
            nouns[id],
            other_nouns=frozenset().union(*nouns.values()) - nouns[id],
            choices=choices,
        )
        for id, table in list(_allowed(tables, wanted))[:_MAX_TABLES]
        if table.columns
    ]


def _allowed(
    tables: Mapping[TableId, TableProfile], wanted: Wanted
) -> Iterable[tuple[TableId, TableProfile]]:
    for id, table in tables.items():
        if wanted.parts and id not in wanted.parts and id.file in {p.file for p in wanted.parts}:
            continue
        if not wanted.files or id.file in wanted.files:
            yield id, table


def joins(
    tables: Mapping[TableId, TableProfile], wanted: Wanted, choices: Mapping[str, str]
) -> list[DataScope]:
    """Return a scope for each two tables that can be joined on a shared key."""
    files = Wanted(wanted.files)  # a part that is named may be joined with another
    allowed = list(_allowed(tables, files))[:_MAX_TABLES]
    found = []
    for (left_id, left), (right_id, right) in permutations(allowed, 2):
        on = _shared(left, right)
        if on and _is_key(right, on) and (left.rows > right.rows or not _is_key(left, on)):
            scope = DataScope(
                TableSource((left_id, right_id), (on,)), (left, right), nouns_of(left),
                nouns_of(right) - nouns_of(left), choices=choices,
            )  # fmt: skip
            found.append(scope)
    return found


def _shared(left: TableProfile, right: TableProfile) -> tuple[str, ...]:
    names = {column.name for column in right.columns}
    both = tuple(column.name for column in left.columns if column.name in names)
    ids = tuple(name for name in both if "id" in name_words(name) or "key" in name_words(name))
    return ids[:1] or (both if len(both) == 1 else ())


def _is_key(table: TableProfile, on: Sequence[str]) -> bool:
    return any(column.name in on and column.distinct == table.rows for column in table.columns)
