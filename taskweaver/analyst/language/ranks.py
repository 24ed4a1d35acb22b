"""Readings of ranks: ``which country has the highest``, ``top 5``, ``the heaviest penguins``."""

from __future__ import annotations

import re
from dataclasses import replace

from taskweaver.analyst.language.atoms import PARTS, Atom, Dimension, Fn, Keys, Mark, Noun, Pick
from taskweaver.analyst.language.checks import names_rows
from taskweaver.analyst.language.groups import (
    GROUPS,
    NUMERIC,
    as_measure,
    conjuncts,
    counted,
    is_single,
    is_unique,
    kinds_for,
)
from taskweaver.analyst.language.names import is_amount, name_words, singular
from taskweaver.analyst.language.parser import Operand
from taskweaver.analyst.language.parts import Phrases, UnclearError, UnfitError, is_of_rows
from taskweaver.analyst.language.values import Cond
from taskweaver.analyst.readings import (
    Column,
    Comparison,
    Condition,
    Expression,
    GroupKey,
    Measure,
    Reading,
    Rows,
    Summary,
    columns_of,
)

_OPENINGS = ("what is the", "what's the", "what was the", "what is", "what")


_BE = "is are was were ist sind war waren"
_OPENS = re.compile(r"\W*(?:what ha[sd]|was hat(?:te)?)\b", re.IGNORECASE)
_MOST = "most fewest least top meiste wenigste".split()
_UNITS = [(unit,) for unit in "month day hour week weekday quarter year".split()]
_COUNTED = "most least fewest of".split()
"""Last words of the superlatives that count: ``most cities``, ``largest number of cities``."""
_COUNTING = {*_MOST, *_COUNTED, "de"}
"""Last words of the superlatives that may count the rows of a noun: not ``largest shops``."""


def ranked(parts: Phrases) -> Reading | None:
    """Return the reading of a request with a superlative or a rank; None if it has none."""
    picks = parts.all(Pick)
    if len(picks) > 1:
        raise UnfitError([parts.phrase(atom) for atom, _ in picks[1:]])
    pick = parts.take(Pick)
    if pick is None:
        return None
    count = None if pick.count or pick.nth else parts.mark("count")
    if count is not None:  # "the 3 customers with the largest ..."
        pick = replace(pick, count=int(count.detail))
    where = parts.where()
    _check_several(parts, where)
    of_rows = _ranks_rows(parts, picks[0][0])
    is_of_value = _ranks_values(parts, picks[0][0])
    asks_when = parts.mark("when") is not None
    _check_asked(parts)
    parts.mark("which who")
    key = None if of_rows else _group(parts, asks_when=asks_when)
    if key is None:
        return _without_group(parts, pick, where, is_of_value=is_of_value)
    return _of_groups(parts, pick, key, where)


def _check_several(parts: Phrases, where: Condition | None) -> None:
    """Refuse a rank among rows of one name: ``the bank`` may be more than a company Bank."""
    for part in conjuncts(where):
        match part:
            case Comparison(Column(name), "==", right) if parts.scope.names_rows(name) or is_unique(
                parts, name
            ):
                raise UnfitError(str(right), f"It is one `{name}`.")


def _check_asked(parts: Phrases) -> None:
    """Refuse ``which customer`` where nothing names customers or the rows."""
    for noun in _asked_nouns(parts):
        is_known = parts.scope.label or noun.kind != "person"
        if not is_known and not names_rows(parts, noun.word):
            raise UnfitError(noun.word, f"No column names a {noun.word}.")


def _asked_nouns(parts: Phrases) -> list[Noun]:
    """Return the nouns after ``which``."""
    asked = _asked(parts)
    return [noun for atom, noun in parts.every(Noun) if atom.start in asked]


def _ranks_rows(parts: Phrases, pick: Atom) -> bool:
    """Return whether a noun for rows follows a superlative, as in ``5 longest flights``."""
    is_most = isinstance(pick.content, Pick) and pick.content.word in _MOST
    groups = [atom for atom, _ in parts.all(Operand) if atom.start < pick.start]
    groups += [atom for atom, noun in parts.all(Noun) if is_most and not is_of_rows(noun)]
    after = [
        atom.content
        for atom in parts.left
        if atom.start >= pick.end and isinstance(atom.content, Noun | Operand | Fn)
    ]
    is_noun = bool(after) and isinstance(after[0], Noun) and after[0].kind != "unit"
    return is_noun and not groups


def _ranks_values(parts: Phrases, pick: Atom) -> bool:
    """Return whether a value is asked for: ``the lowest body_mass_g of Adelie penguins``."""
    nouns = [
        atom
        for atom in parts.left
        if atom.start < pick.start and isinstance(atom.content, Noun | Mark)
    ]
    asks = [atom for atom in nouns if parts.phrase(atom).casefold() not in _OPENINGS]
    after = [atom.content for atom in parts.left if atom.start >= pick.end]
    return not (asks or _asks_who(parts)) and bool(after) and isinstance(after[0], Operand)


def _group(parts: Phrases, *, asks_when: bool) -> GroupKey | None:
    """Use the phrase that names the groups a rank is of; None if rows or values are ranked."""
    key = _named_unit(parts) or _named_column(parts)
    if key is None and asks_when:
        times = parts.scope.time_columns
        if len(times) != 1:
            raise UnfitError("when", "There is not one column of times.")
        return GroupKey(times[0])
    return key


def _named_unit(parts: Phrases) -> GroupKey | None:
    for atom, noun in parts.all(Noun):
        is_row = noun.unit == "day" and parts.is_daily and not parts.is_of_month
        if noun.kind == "unit" and not is_row:
            key = _unit_keys(parts, noun)
            if key is not None:
                parts.use(atom)
                return key
    return None


def _named_column(parts: Phrases) -> GroupKey | None:
    """Use a column of texts; a noun of a joined table stands for the column of its names."""
    label = parts.scope.label
    for atom, operand in parts.all(Operand):
        if label and singular(operand.phrase.casefold()) in parts.scope.side_nouns:
            parts.use(atom)
            return GroupKey(label)
    for atom, operand in parts.all(Operand):
        names = tuple(Column(name) for name in operand.names if _can_group(parts, name))
        if singular(operand.phrase.casefold()) in parts.scope.other_nouns:
            raise UnfitError(operand.phrase)
        if names:
            parts.use(atom)
            value = parts.column_of(Operand(names, operand.phrase, operand.distance))
            return GroupKey(value.name) if isinstance(value, Column) else None
    return None


def _can_group(parts: Phrases, name: str) -> bool:
    """Return whether a column can name groups: one of texts, flags, identifiers or years."""
    kind = parts.kind(name)
    is_id = name_words(name)[-1:] == ("id",) and (parts.distinct(name) < parts.scope.rows)
    is_year = name in parts.scope.year_columns or _is_unit(name)
    is_counted = any(
        noun.kind != "unit" and parts.words.lower(atom.start - 1) in _COUNTED
        for atom, noun in parts.all(Noun)
    )
    is_group = is_id or is_year or is_counted or bool(GROUPS & set(name_words(name)[-1:]))
    return kind in ("text", "flag") or (kind == "integer" and is_group)


def _unit_keys(parts: Phrases, noun: Noun) -> GroupKey | None:
    if own := parts.scope.own_period(noun.unit):
        return GroupKey(own)
    low = parts.words.text.casefold()
    is_calendar = f"{noun.unit} of the year" in low or parts.is_of_month
    for name in parts.scope.time_columns:
        if parts.kind(name) != "time" and noun.unit != "decade":
            return GroupKey(name) if noun.unit == "year" else None
        if noun.unit in PARTS or is_calendar:
            return GroupKey(name, part=noun.unit)  # type: ignore[arg-type]
        return GroupKey(name, unit=noun.unit)  # type: ignore[arg-type]
    named = [name for name in parts.scope.columns if name_words(name) == (noun.unit,)]
    return GroupKey(named[0]) if named and parts.kind(named[0]) == "text" else None


def _can_rank(parts: Phrases, name: str) -> bool:
    """Return whether a column can be ranked by: one of numbers that are no identifiers."""
    is_id = name_words(name)[-1:] == ("id",)
    return parts.kind(name) in NUMERIC and not is_id and not _is_unit(name)


def _is_unit(name: str) -> bool:
    """Return whether a column holds numbers of a unit of time: months, days."""
    return name_words(name) in _UNITS


def _ordering(parts: Phrases, pick: Pick) -> tuple[Fn | None, Expression | None]:
    """Use the function and the operand that a rank is by."""
    fns = parts.take_all(Fn)
    by = by_operand(parts)
    operands = [] if by else [
        (atom, operand)
        for atom, operand in parts.all(Operand)
        if operand.is_arithmetic or any(_can_rank(parts, name) for name in operand.names)
    ]  # fmt: skip
    if len(fns) > 1 and fns[0].function != fns[1].function:
        raise UnfitError([fn.function for fn in fns])
    fn = fns[0] if fns else None
    if by:
        return fn, parts.column_of(by, kinds=NUMERIC)
    others = [operand for _, operand in operands if not set(operand.names) & set(pick.columns)]
    if pick.columns and others:  # they are values of the row that is found
        if fn is not None or any(operand.is_arithmetic for operand in others):
            raise UnfitError(pick.word, f"Say which rows are the {pick.word} ones.")
        return None, parts.column_of(Operand(tuple(map(Column, pick.columns)), pick.word))
    if operands:
        parts.use(operands[0][0])
        return fn, parts.column_of(operands[0][1], kinds=kinds_for(fn.function) if fn else NUMERIC)
    dimension = parts.take(Dimension)
    if dimension is not None and not pick.columns:
        pick = replace(pick, columns=dimension.columns)
    if pick.columns:
        value = parts.column_of(Operand(tuple(map(Column, pick.columns)), pick.word or "it"))
        return fn, value
    return fn, None


def by_operand(parts: Phrases, *, is_only: bool = False) -> Operand | None:
    """Use ``by gdpPercap`` of a rank as an operand; `is_only` is for one that names no groups."""
    parts.mark("by")
    for atom, keys in parts.all(Keys):
        if keys.is_by and len(keys.keys) == 1:
            names = tuple(
                key.column
                for key in keys.keys[0]
                if parts.kind(key.column) in NUMERIC and not key.unit
                if not is_only
                or (_can_rank(parts, key.column) and not _can_group(parts, key.column))
            )
            if names:
                parts.use(atom)
                return Operand(tuple(map(Column, names)), keys.phrase.split(maxsplit=1)[-1])
    return None


def _of_groups(parts: Phrases, pick: Pick, key: GroupKey, where: Condition | None) -> Reading:
    fn, value = _ordering(parts, pick)
    measure = _group_measure(parts, pick, fn, value, key, where)
    extra = parts.keys()
    if extra:
        raise UnfitError([key.column for key in extra], "A rank within groups is not understood.")
    parts.mentioned.add(key.column)
    is_one, keys = pick.rank.count in {1, None}, parts.whole(key)
    return Summary(parts.source, (measure,), keys, where, rank=pick.rank, names_winner=is_one)


def _group_measure(
    parts: Phrases,
    pick: Pick,
    fn: Fn | None,
    value: Expression | None,
    key: GroupKey,
    where: Condition | None,
) -> Measure:
    if value is None:
        if fn is not None and fn.function not in ("count", "nunique"):
            raise UnfitError(fn.function, f"Name the column of “{parts.phrases(Fn)[-1]}”.")
        if key == GroupKey(key.column) and is_unique(parts, key.column):
            raise UnfitError(key.column)
        return _counted_rows(parts, pick, is_number=fn is not None)
    if fn is not None and fn.function == "count" and isinstance(value, Column):
        return counted(parts, Operand((value,), value.name))
    if fn is not None:
        return Measure(fn.function, value, quantile=fn.quantile)
    return _of_value(parts, pick, value, key, where)


def _of_value(
    parts: Phrases, pick: Pick, value: Expression, key: GroupKey, where: Condition | None
) -> Measure:
    """Return the measure of a column that groups are ranked by, or ask for the function."""
    extreme = Measure("min" if pick.ascending else "max", value)
    if not key.unit and not key.part and is_single(parts, key.column, where):
        return extreme
    name = columns_of(value)[0]
    phrase = f"{pick.word} {name}"
    choice = parts.scope.choices.get(phrase.casefold())
    if choice == "single value":
        return extreme
    is_most = pick.word.split()[0].removesuffix("n") in _MOST
    adds_up = is_amount(name, is_certain=not is_most) and not parts.scope.time_columns
    if choice == "total" or (choice is None and adds_up):
        return Measure("sum", value)
    if choice == "mean" or _is_adjective(parts, pick):
        return Measure("mean", value)
    raise UnclearError(phrase, ("total", "mean", "single value"))


def _is_adjective(parts: Phrases, pick: Pick) -> bool:
    """Return whether groups are what an adjective says: ``which species is the heaviest``."""
    words = parts.words
    starts = [atom.start - 1 for atom in parts.atoms if atom.content == pick]
    before = [place - 1 if words.lower(place) == "the" else place for place in starts]
    return bool(pick.columns) and any(words.says(place, _BE) for place in before)


def _counted_rows(parts: Phrases, pick: Pick, *, is_number: bool) -> Measure:
    """Return the count of rows, for ``most penguins``; ``largest penguins`` are no number."""
    rows = parts.take_all(Noun, is_of_rows)
    others = [
        (atom, operand)
        for atom, operand in parts.all(Operand)
        if any(parts.kind(name) == "text" for name in operand.names)
    ]
    if not rows and not others and _counts_values(parts, pick):
        return Measure("count")
    if not rows and others and pick.word in _COUNTED:
        parts.use(others[0][0])
        return counted(parts, others[0][1])
    is_number = is_number or pick.word.removesuffix("n") in _COUNTING
    if not (rows and is_number):
        raise UnfitError(parts.phrases(Pick)[0].split(), "Name the column to rank by.")
    return Measure("count")


def _counts_values(parts: Phrases, pick: Pick) -> bool:
    """Return whether values follow a superlative: ``most droids`` counts rows of droids."""
    ends = {atom.end for atom in parts.atoms if atom.content == pick}
    follows = any(cond.is_bare and atom.start in ends for atom, cond in parts.every(Cond))
    return pick.word in ("most", "fewest", "least") and follows


def _without_group(
    parts: Phrases, pick: Pick, where: Condition | None, *, is_of_value: bool
) -> Reading:
    is_value = is_of_value and not pick.count
    rows = parts.take_all(Noun, is_of_rows)
    units = parts.take_all(Noun, lambda noun: noun.kind == "unit")
    keys = _keys_beside(parts)
    if keys and (rows or _asks_who(parts)):
        raise UnfitError(pick.word, "A rank within groups is not understood.")
    fn, value = _ordering(parts, pick)
    if value is None:
        raise UnfitError(pick.word or "top", "Name the column to rank by.")
    of_rows = bool(rows or units or _asks_for_rows(parts)) and fn is None and not is_value
    of_rows = of_rows or (bool(pick.columns) and parts.has(Operand))
    are_rows = all(unit.unit == "day" for unit in units) and (
        parts.is_daily or not parts.scope.time_columns
    )
    if units and not are_rows:
        raise UnfitError([unit.word for unit in units], "Name the column of times.")
    if of_rows and not keys:
        return _rows(parts, pick, value, where)
    if pick.count and pick.count > 1 and fn is None and not keys:
        return _rows(parts, pick, value, where)
    if keys and pick.count:  # "sales by state, top 5"
        if len(keys) > 1:
            raise UnfitError(pick.word, "A rank within groups is not understood.")
        measure = _group_measure(parts, pick, fn, value, keys[0], where)
        return Summary(parts.source, (measure,), keys, where, rank=pick.rank)
    if fn is not None:
        raise UnfitError(pick.word, f"Say of which groups the {fn.function} is compared.")
    return Summary(parts.source, (as_measure(pick, value),), keys, where)


def _keys_beside(parts: Phrases) -> tuple[GroupKey, ...]:
    """Use the group keys but numbers that follow ``by``: those are what a rank is by."""
    return parts.keys(
        lambda keys: (
            not (keys.is_by and all(parts.kind(key.column) in NUMERIC for key in keys.keys[0]))
        )
    )


def _is_named(parts: Phrases, value: Expression) -> bool:
    """Return whether the column that rows are ranked by is one to show: not ``by body_mass_g``.

    Columns of arithmetic are no rows: a rank by it shows the rows whole.
    """
    operands = [operand for _, operand in parts.every(Operand)]
    return isinstance(value, Column) and any(value in operand.options for operand in operands)


def _asks_who(parts: Phrases) -> bool:
    """Return whether a request opens with ``who``, or with ``what`` before ``has``."""
    is_who = any(mark.detail == "who" for _, mark in parts.every(Mark))
    return is_who or _OPENS.match(parts.words.text) is not None


def _asks_for_rows(parts: Phrases) -> bool:
    """Return whether rows are asked for: by ``who``, ``which one``, or ``which`` before a value."""
    starts = {atom.start for atom, _ in parts.every(Cond)}
    return _asks_who(parts) or any(
        at in starts or parts.words.says(at, "one ones of") for at in _asked(parts)
    )


def _asked(parts: Phrases) -> set[int]:
    """Return the places after ``which``."""
    return {atom.end for atom, mark in parts.every(Mark) if mark.kind == "which"}


def _rows(parts: Phrases, pick: Pick, value: Expression, where: Condition | None) -> Reading:
    """Return the rows that come first by a value, with the column that names them."""
    names = list(columns_of(value))
    shown = [
        parts.column_of(operand) for operand in parts.take_all(Operand) if not operand.is_arithmetic
    ]
    columns = [column.name for column in shown if isinstance(column, Column)]
    label = parts.scope.label
    times = [name for name in parts.scope.time_columns if parts.kind(name) == "time"]
    lead = [label] if label else times if parts.is_daily else []
    first = list(dict.fromkeys([*lead, *columns, *names]))
    units = [noun for _, noun in parts.every(Noun) if not is_of_rows(noun)]
    is_asked = bool(_asks_who(parts) or units or _asked_nouns(parts))
    is_known = bool(lead or columns or (_is_named(parts, value) and not is_asked))
    return Rows(parts.source, tuple(first) if is_known else (), where, value, pick.rank)
