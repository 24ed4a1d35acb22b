"""Phrases of a request while a reading is composed of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

from taskweaver.analyst.language.atoms import Atom, Content, Keys, Mark, Noun
from taskweaver.analyst.language.names import meanings, name_words, singular
from taskweaver.analyst.language.parser import Operand, Words
from taskweaver.analyst.language.values import Cond, Option, conjunction
from taskweaver.analyst.readings import (
    Column,
    Comparison,
    Condition,
    During,
    Expression,
    GroupKey,
    Not,
    OneOf,
    Rank,
    Unclear,
    columns_in,
    columns_of,
)

T = TypeVar("T", bound=Content)
_OF_MONTH = re.compile(r"\bof (?:the |each |every )?month\b|calendar", re.IGNORECASE)
_SCALED = re.compile(r"\d\s?(?:bn|thousand|million|billion)\b", re.IGNORECASE)
_OF_ROWS = frozenset(
    "date time year month day hour timestamp datetime yr period datum jahr".split()
)
"""Words of names of times that are those of the rows, and not of one of several deeds."""


class UnfitError(Exception):
    """Phrases that make no reading.

    Attributes:
        words: The words that do not fit.
        reason: A sentence; empty if the words say it.
    """

    def __init__(self, words: str | Sequence[str], reason: str = "") -> None:
        """Keep the words, or the only one, and the reason."""
        self.words = (words,) if isinstance(words, str) else tuple(words)
        super().__init__(reason or ", ".join(self.words))
        self.reason = reason


def is_of_rows(noun: Noun) -> bool:
    """Return whether a noun stands for rows, and not for a unit of time."""
    return noun.kind != "unit"


class UnclearError(Exception):
    """Phrases that make several readings."""

    def __init__(self, phrase: str, options: Sequence[str]) -> None:
        """Word the question."""
        quoted = [f"`{option}`" for option in options]
        listed = ", ".join(quoted[:-1]) + " or " + quoted[-1]
        self.unclear = Unclear(f"Does “{phrase}” mean {listed}?", phrase, tuple(options))
        super().__init__(self.unclear.question)


class Phrases:
    """Phrases that a reading has not used yet, and its notes.

    Attributes:
        scope: Columns and values of the request.
        source: Tables of its reading.
        atoms: All phrases.
        left: Phrases that are not used yet, without filler.
        notes: Decisions worth a line.
        unused: Words that the answer names as not used.
        mentioned: Columns the reading is about.
    """

    def __init__(self, words: Words, atoms: Sequence[Atom]) -> None:
        """Begin with all phrases."""
        self.words = words
        self.scope = words.scope
        self.source = words.scope.source
        self.atoms = tuple(atoms)
        self.left = [
            atom
            for atom in atoms
            if not (isinstance(atom.content, Mark) and atom.content.kind in ("filler", "verb"))
        ]
        self.notes: list[str] = []
        self.unused: list[str] = []
        self.mentioned: set[str] = set()

    # -- taking phrases ---------------------------------------------------------------------------

    def every(self, kind: type[T]) -> list[tuple[Atom, T]]:
        """Return all phrases of a kind, those used before too, in order."""
        return [(atom, atom.content) for atom in self.atoms if isinstance(atom.content, kind)]

    def all(self, kind: type[T]) -> list[tuple[Atom, T]]:
        """Return the phrases of a kind that are left, in order."""
        return [(atom, atom.content) for atom in self.left if isinstance(atom.content, kind)]

    def has(self, kind: type[T], test: Callable[[T], bool] = lambda _: True) -> bool:
        """Return whether a phrase of a kind is left."""
        return any(test(content) for _, content in self.all(kind))

    def take(self, kind: type[T], test: Callable[[T], bool] = lambda _: True) -> T | None:
        """Use the first phrase of a kind; None if there is none."""
        for atom, content in self.all(kind):
            if test(content):
                self.left.remove(atom)
                return content
        return None

    def take_all(self, kind: type[T], test: Callable[[T], bool] = lambda _: True) -> list[T]:
        """Use all phrases of a kind."""
        found = [(atom, content) for atom, content in self.all(kind) if test(content)]
        for atom, _ in found:
            self.left.remove(atom)
        return [content for _, content in found]

    def use(self, atom: Atom) -> None:
        """Use a phrase."""
        self.left.remove(atom)

    def has_mark(self, kinds: str) -> bool:
        """Return whether a mark of one of some kinds is left."""
        return self.has(Mark, lambda mark: mark.kind in kinds.split())

    def mark(self, kinds: str) -> Mark | None:
        """Use the marks of some kinds, given as a text; return the first."""
        found = self.take_all(Mark, lambda mark: mark.kind in kinds.split())
        return found[0] if found else None

    def order(self) -> Rank | None:
        """Use the marks of an order; return it, or None for none."""
        found, direction = self.has_mark("sort asc desc"), self.mark("asc desc")
        self.mark("sort")
        return Rank(direction is None or direction.kind == "asc") if found else None

    def phrase(self, atom: Atom) -> str:
        """Return the words of a phrase as written."""
        return self.words.raw(atom.start, atom.end)

    def phrases(self, kind: type[T]) -> list[str]:
        """Return the words of all phrases of a kind as written."""
        return [self.phrase(atom) for atom, _ in self.every(kind)]

    # -- resolving columns ------------------------------------------------------------------------

    def column_of(self, operand: Operand, *, kinds: Sequence[str] = ()) -> Expression:
        """Return the expression an operand means, of columns of some kinds.

        Raises:
            UnfitError: If its column is of another kind.
            UnclearError: If several columns are left.
        """
        options: list[Expression] = [
            option
            for option in operand.options
            if not kinds or not isinstance(option, Column) or self.kind(option.name) in kinds
        ]
        if not options:
            name, kind = operand.names[0], "times" if kinds == ("time",) else "numbers"
            raise UnfitError(operand.phrase, f"The column `{name}` does not hold {kind}.")
        chosen = self.scope.choices.get(operand.phrase.casefold())
        options = [option for option in options if option == Column(chosen or "")] or options
        if len(options) > 1:
            others = {
                name
                for _, other in self.all(Operand)
                if other is not operand and len(other.names) == 1
                for name in other.names
            }
            named = [
                option for option in options if isinstance(option, Column) and option.name in others
            ]
            options = [*named] or options
        if len(options) > 1:
            names = [option.name for option in options if isinstance(option, Column)]
            raise UnclearError(operand.phrase, names)
        self._note(operand, options[0])
        self.mentioned.update(columns_of(options[0]))
        return options[0]

    def _note(self, operand: Operand, option: Expression) -> None:
        if isinstance(option, Column) and operand.distance >= 3:
            self.notes.append(f"I took “{operand.phrase}” as the column `{option.name}`.")

    def kind(self, name: str) -> str:
        """Return the kind of a column."""
        return self.words.profile(name).kind

    def distinct(self, name: str) -> int:
        """Return the number of distinct values of a column."""
        return self.words.profile(name).distinct

    def may_be_numbers(self, operand: Operand) -> bool:
        """Return whether an operand is arithmetic, or may mean a column of numbers."""
        return operand.is_arithmetic or any(map(self.words.is_numeric, operand.names))

    @property
    def is_daily(self) -> bool:
        """Whether each row is a day, so that days are a noun for the rows."""
        times, parts = self.scope.time_columns, self.scope.date_parts
        if "day" in parts and set(times) <= set(parts.values()):
            return prod(map(self.distinct, parts.values())) >= self.scope.rows
        return len(times) == 1 and self.distinct(times[0]) == self.scope.rows

    def condition(self, conds: Sequence[Cond]) -> Condition | None:
        """Return the conjunction of conditions; their columns are resolved.

        Raises:
            UnclearError: If a column is not clear.
            UnfitError: If they contradict each other.
        """
        named = {
            name for _, other in self.all(Operand) if len(other.names) == 1 for name in other.names
        }
        parts: list[Condition] = []
        for cond in conds:
            option = self._option(cond, named)
            parts.append(option.condition)
            self._check_scale(cond.phrase, option.condition)
            self.mentioned.update(columns_in(option.condition))
            self.unused += [word for word in cond.unused if word not in self.unused]
            self.notes += [
                f"I took “{word}” as {self.scope.guesses[word]}."
                for word in self.scope.guesses
                if re.search(rf"(?<![^\W\d]){re.escape(word)}(?!\w)", cond.phrase.casefold())
            ]
        _check_contradiction(parts, [cond.phrase for cond in conds])
        return conjunction(*parts)

    def _check_scale(self, phrase: str, condition: Condition) -> None:
        """Refuse ``over 2 billion`` where a column may count in billions: it is beyond its values.

        Raises:
            UnfitError: If no value of the column is as far.
        """
        match condition:
            case Comparison(Column(name), ">" | ">=" | "==", int() | float() as number):
                profile = self.words.profile(name)
                if _SCALED.search(phrase) and number > float(profile.high or "inf"):
                    span = f"`{name}` holds {profile.low} to {profile.high}"
                    raise UnfitError(phrase, f"{span}: say the number in its unit.")

    def _option(self, cond: Cond, named: set[str]) -> Option:
        options = cond.options
        if len(options) > 1:
            chosen = self.scope.choices.get(cond.phrase.casefold())
            options = tuple(option for option in options if option.column == chosen) or options
        if len(options) > 1:
            options = tuple(option for option in options if option.column in named) or options
        if len(options) > 1:
            raise UnclearError(cond.phrase, [option.column for option in options])
        return options[0]

    def conditions(self) -> list[Cond]:
        """Use all conditions."""
        return self.take_all(Cond)

    def where(self) -> Condition | None:
        """Use all conditions; return their conjunction, as `condition` does."""
        return self.condition(self.conditions())

    def keys(self, test: Callable[[Keys], bool] = lambda _: True) -> tuple[GroupKey, ...]:
        """Use all group keys, or those of a kind.

        Raises:
            UnclearError: If the column of a key is not clear.
        """
        found: list[GroupKey] = []
        for keys in self.take_all(Keys, test):
            for options in keys.keys:
                if len(options) > 1:
                    raise UnclearError(keys.phrase, [key.column for key in options])
                found += self.whole(options[0])
        self.mentioned.update(key.column for key in found)
        return tuple(dict.fromkeys(found))

    def whole(self, key: GroupKey) -> tuple[GroupKey, ...]:
        """Return the keys of whole days for one of days of the month, unless that is asked for."""
        is_day = key == GroupKey(self.scope.date_parts.get("day", ""))
        return self.scope.day_keys if is_day and not self.is_of_month else (key,)

    @property
    def is_of_month(self) -> bool:
        """Whether days of the month are meant, of any month."""
        return _OF_MONTH.search(self.words.text) is not None

    def _before_condition(self, atom: Atom) -> bool:
        after = next((other for other in self.atoms if other.start == atom.end), None)
        return after is not None and isinstance(after.content, Cond)

    def _is_restricted_noun(self, atom: Atom, operand: Operand) -> bool:
        """Return whether a column of texts is the noun of a condition: ``African countries``."""
        is_text = all(self.kind(name) == "text" for name in operand.names)
        is_flag = any(self.scope.flag_value(name) is not None for name in operand.names)
        last = operand.phrase.casefold().split()[-1]
        if not is_text or is_flag or operand.distance > 2 or singular(last) == last:
            return False
        conds = [other for other in self.atoms if isinstance(other.content, Cond)]
        after = self.words.skip(atom.end, "in from with that where on")
        return any(cond.end == atom.start or after == cond.start > atom.end for cond in conds)

    def names_each_row(self, operand: Operand) -> bool:
        """Return whether a column of texts is named in the plural and differs in each row."""
        low = operand.phrase.casefold()
        if len(operand.names) != 1 or singular(low) == low or operand.distance > 1:
            return False
        (name,) = operand.names
        return self.kind(name) == "text" and self.distinct(name) == self.scope.rows

    def _is_side_noun(self, operand: Operand) -> bool:
        """Return whether an operand is only a noun: of a joined table, or the rows' own."""
        for name in operand.names:
            profile = self.words.profile(name)
            is_id = name_words(name)[-1:] == ("id",) and profile.distinct == self.scope.rows
            if operand.distance == 2 and is_id:
                return True
        return singular(operand.phrase.casefold()) in self.scope.side_nouns

    # -- the end ----------------------------------------------------------------------------------

    def _is_mentioned(self, operand: Operand) -> bool:
        """Return whether a column is named a second time: ``smokers`` is a condition instead."""
        is_flag = all(self.scope.flag_value(name) is not None for name in operand.names)
        is_inexact = operand.distance > 0 and operand.phrase.casefold() not in operand.names
        return bool(set(operand.names) & self.mentioned) and not (is_flag and is_inexact)

    def _says_nothing(self, atom: Atom, mark: Mark) -> bool:
        """Return whether a mark that is left adds nothing to the reading."""
        if mark.kind == "link":
            return mark.detail == "event" and self._has_time_of(self.words.lower(atom.end - 1))
        is_by = mark.kind == "by" and self._before_condition(atom)
        return is_by or mark.kind in ("which", "show")

    def _has_time_of(self, verb: str) -> bool:
        """Return whether times are the rows' own or a verb's: ``built before 1980``."""
        columns = {
            one.column for _, cond in self.every(Cond) if cond.is_time for one in cond.options
        }
        for _, keys in self.every(Keys):
            columns |= {key.column for options in keys.keys for key in options if key.unit}
        names = [set(name_words(column)) for column in columns]
        own = meanings(verb) | {verb}
        return bool(names) and all(
            name <= _OF_ROWS or name & own or any(part[:4] == verb[:4] for part in name)
            for name in names
        )

    def finish(self) -> None:
        """Check that all phrases are used; columns may be named twice.

        Raises:
            UnfitError: If a phrase is left.
        """
        for atom in list(self.left):
            content = atom.content
            if isinstance(content, Operand) and (
                self._is_mentioned(content)
                or self._is_restricted_noun(atom, content)
                or self._is_side_noun(content)
                or self.names_each_row(content)
            ):
                self.left.remove(atom)
            elif isinstance(content, Noun):
                self.left.remove(atom)
                is_named = bool(meanings(content.word) & self.scope.nouns)
                if content.kind in ("person", "thing") and not is_named:
                    self.unused.append(content.word)
                if content.kind == "unit" and not (content.unit == "day" and self.is_daily):
                    raise UnfitError(content.word)
            elif isinstance(content, Mark) and self._says_nothing(atom, content):
                self.left.remove(atom)
        if self.left:
            raise UnfitError([self.phrase(atom) for atom in self.left])


def _check_contradiction(parts: Sequence[Condition], phrases: Sequence[str]) -> None:
    """Refuse two different values of one column, as in ``Adelie ... Gentoo``."""
    seen: dict[str, Condition] = {}
    for part, phrase in zip(parts, phrases, strict=True):
        name = _pinned(part)
        if name is None:
            continue
        is_other = name in seen and seen[name] != part
        if is_other or Not(part) in parts or (name and _unlike(part) in parts):
            raise UnfitError(phrase, f"There are two different conditions on `{name}`.")
        seen[name] = part


def _unlike(part: Condition) -> Condition | None:
    """Return the condition that a column has another value than a single one."""
    return replace(part, operator="!=") if isinstance(part, Comparison) else None


def _pinned(condition: Condition) -> str | None:
    if isinstance(condition, OneOf):
        return condition.column
    if isinstance(condition, During):
        return condition.column if condition.start and condition.end else None
    if isinstance(condition, Comparison) and condition.operator == "==":
        return condition.left.name if isinstance(condition.left, Column) else None
    return None
