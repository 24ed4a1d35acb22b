"""Measures and groups of a reading."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.analyst.language.atoms import Atom, Fn, Pick
from taskweaver.analyst.language.names import is_amount, name_words, singular
from taskweaver.analyst.language.parser import Operand
from taskweaver.analyst.language.parts import Phrases, UnfitError
from taskweaver.analyst.language.values import Cond
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    During,
    Expression,
    Function,
    GroupKey,
    Measure,
    OneOf,
    Or,
    columns_of,
)

NUMERIC = ("number", "integer")
_ORDERED = (*NUMERIC, "time")
_ANSWERS = frozenset("yes no y n true false ja nein oui non".split())
_LABELS = frozenset("id key code number no nr".split())
HEADS = frozenset("size people persons guests visitors pop population".split())
"""Names of columns that count people."""
GROUPS = frozenset(
    "location site station store shop school group cluster team region zone district county brood "
    "subject patient person customer house family class batch lot block plot field tree animal "
    "player season level stage category type cylinder cyl gear carb".split()
)
"""Nouns of columns whose integers are names."""
_ANY: tuple[str, ...] = ()
_KINDS: dict[Function, tuple[str, ...]] = {
    "count": _ANY, "nunique": _ANY, "mode": _ANY, "missing": _ANY, "min": _ORDERED,
    "max": _ORDERED, "range": _ORDERED,
}  # fmt: skip


def kinds_for(function: Function) -> tuple[str, ...]:
    """Return the kinds of columns a function can be computed from; empty for any."""
    return _KINDS.get(function, NUMERIC)


def measures(parts: Phrases) -> tuple[Measure, ...]:
    """Use functions and the operands that go with them; return their measures.

    Raises:
        UnfitError: If a function has no operand, or one it cannot be computed from.
    """
    found: list[Measure] = []
    for functions, operands in _grouped(parts):
        _check_pairs(functions, operands)
        if not operands:
            found += [_without_operand(parts, fn) for fn in functions]
        elif any(fn.function == "correlation" for fn in functions):
            found.append(_correlation(parts, operands))
        else:
            found += [_measure(parts, fn, operand) for fn in functions for operand in operands]
    return tuple(dict.fromkeys(found))


def _check_pairs(functions: Sequence[Fn], operands: Sequence[Operand]) -> None:
    """Refuse distinct values of two columns: those of each, or their pairs."""
    if len(operands) > 1 and any(fn.function == "nunique" for fn in functions):
        phrase = " and ".join(operand.phrase for operand in operands)
        raise UnfitError(phrase, "Say whether the pairs are counted, or each column.")


def _grouped(parts: Phrases) -> list[tuple[list[Fn], list[Operand]]]:
    """Return functions with the operands after them; operands before the first go with it."""
    sequence = [
        (atom, atom.content) for atom in parts.left if isinstance(atom.content, Fn | Operand)
    ]
    sequence = _without_counts(parts, sequence)
    everything = parts.mark("everything")
    groups: list[tuple[list[Fn], list[Operand]]] = []
    early: list[tuple[Atom, Operand]] = []
    for atom, content in sequence:
        if isinstance(content, Fn):
            if not groups or groups[-1][1]:
                groups.append(([], []))
            groups[-1][0].append(content)
            parts.use(atom)
        elif _is_label(content, [other for _, other in sequence]):
            parts.use(atom)
        elif groups:
            _add(parts, groups[-1], atom, content)
        else:
            early.append((atom, content))
    if groups and not groups[0][1]:
        for atom, content in early:
            _add(parts, groups[0], atom, content)
    groups = _without_repeats(groups)
    if everything and groups and not groups[-1][1]:
        groups[-1][1].extend(_all_numbers(parts))
    return groups


def _add(
    parts: Phrases, group: tuple[list[Fn], list[Operand]], atom: Atom, operand: Operand
) -> None:
    """Use an operand for the functions of a group, if it goes with them."""
    functions, operands = group
    is_first = not operands
    # In "petal area, petal length times petal width" the length and width repeat the area.
    is_repeated = any(set(operand.names) & set(other.names) for other in operands)
    if not is_first and (is_repeated or not _is_joined(parts, atom)):
        return
    if _takes(functions, operand, parts, is_first=is_first):
        operands.append(operand)
        parts.use(atom)


def _is_joined(parts: Phrases, atom: Atom) -> bool:
    """Return whether a conjunction or a comma comes before a phrase."""
    at = atom.start - 1
    while parts.words.says(at, "the of with"):
        at -= 1
    return parts.words.says(at, "and , & with und et y и og to")


def _is_label(operand: Operand, others: Sequence[Fn | Operand]) -> bool:
    """Return whether an operand only names arithmetic: ``gdp (pop * gdpPercap)``."""
    computed = {
        name
        for other in others
        if isinstance(other, Operand) and other.is_arithmetic
        for name in columns_of(other.options[0])
    }
    return operand.distance >= 2 and bool(computed & set(operand.names))


def _without_repeats(
    groups: list[tuple[list[Fn], list[Operand]]],
) -> list[tuple[list[Fn], list[Operand]]]:
    """Drop functions without an operand that explain one before: ``range (max minus min)``."""
    known = {fn for functions, operands in groups if operands for fn in functions}
    counts = {Fn("count"), Fn("nunique")}
    if known or any(fn in counts for functions, _ in groups for fn in functions):
        known.add(Fn("sum"))  # "how many ... in total"
    return [
        (functions, operands)
        for functions, operands in groups
        if operands or not all(fn in known for fn in functions)
    ]


def _all_numbers(parts: Phrases) -> list[Operand]:
    return [
        Operand((Column(name),), name)
        for name in parts.scope.columns
        if parts.words.is_numeric(name) and name not in parts.mentioned
    ]


def _without_counts(
    parts: Phrases, sequence: list[tuple[Atom, Fn | Operand]]
) -> list[tuple[Atom, Fn | Operand]]:
    """Drop ``number of`` between a function and its operand: ``mean number of patients``."""
    kept: list[tuple[Atom, Fn | Operand]] = []
    for at, (atom, content) in enumerate(sequence):
        if isinstance(content, Fn) and content.function == "count" and kept:
            before, after = kept[-1][1], sequence[at + 1 : at + 2]
            is_inside = isinstance(before, Fn) and before.function not in ("count", "nunique")
            if is_inside and after and isinstance(after[0][1], Operand):
                parts.use(atom)
                continue
        kept.append((atom, content))
    return kept


def _takes(functions: Sequence[Fn], operand: Operand, parts: Phrases, *, is_first: bool) -> bool:
    if operand.is_arithmetic or is_first:
        return True
    names = {fn.function for fn in functions}
    is_numeric = any(map(parts.words.is_numeric, operand.names))
    return is_numeric and ("correlation" in names or "count" not in names)


def _correlation(parts: Phrases, operands: Sequence[Operand]) -> Measure:
    parts.mark("between")
    values = list(dict.fromkeys(parts.column_of(operand, kinds=NUMERIC) for operand in operands))
    if len(values) != 2:
        raise UnfitError("correlation", "A correlation is of two columns of numbers.")
    return Measure("correlation", values[0], other=values[1])


def _measure(parts: Phrases, fn: Fn, operand: Operand) -> Measure:
    if fn.function == "count":
        return counted(parts, operand)
    kinds = ("time",) if fn.is_time else kinds_for(fn.function)
    value = parts.column_of(operand, kinds=kinds)
    return Measure(fn.function, value, quantile=fn.quantile)


def counted(parts: Phrases, operand: Operand) -> Measure:
    """Return the measure for ``how many`` with a column: distinct values, or a total."""
    value = parts.column_of(operand)
    if not isinstance(value, Column):
        raise UnfitError(operand.phrase)
    profile = parts.words.profile(value.name)
    is_flag = parts.scope.flag_value(value.name) is not None
    is_answer = _ANSWERS & {value.casefold() for value in profile.values or ()}
    last = operand.phrase.casefold().split()[-1]
    if is_flag or is_answer or (profile.kind == "time" and operand.distance):
        raise UnfitError(operand.phrase)
    if last.endswith("ed") and profile.kind == "text":
        raise UnfitError(operand.phrase, f"Say how many different `{value.name}`.")
    if profile.kind in NUMERIC and not _LABELS & set(name_words(value.name)):
        if value.name in parts.scope.year_columns and operand.distance < 2:
            return Measure("nunique", value)
        names_groups = bool(GROUPS & set(name_words(value.name)[-1:])) and singular(last) != last
        if names_groups and not is_amount(value.name):
            return Measure("nunique", value)
        is_several = singular(last) != last or operand.distance > 2
        times, is_dated = parts.scope.time_columns, any(one.is_time for _, one in parts.every(Cond))
        if times and not is_dated and value.name.casefold() in HEADS:
            raise UnfitError((), f"Say of which `{times[0]}`.")
        if profile.kind == "integer" and is_several and is_amount(value.name):
            parts.notes.append(f"`{value.name}` holds numbers: I added them up.")
            return Measure("sum", value)
        raise UnfitError(operand.phrase, f"`{value.name}` holds numbers; say total or distinct.")
    return Measure("nunique", value)


def _without_operand(parts: Phrases, fn: Fn) -> Measure:
    if fn.function in ("count", "missing"):
        return Measure(fn.function)
    raise UnfitError(fn.function, f"Name the column of “{parts.phrases(Fn)[-1]}”.")


_SEASON = r"\b(?:spring|summer|autumn|fall|winter|frühling|sommer|herbst)\b"
_SEASONS = re.compile(rf"{_SEASON}.*\b(?:and|und)\b.*{_SEASON}", re.IGNORECASE)


def compared(
    parts: Phrases, conds: Sequence[Cond], found: Sequence[Measure]
) -> tuple[GroupKey, ...]:
    """Return the group key of values that are listed to be compared; none otherwise.

    Means of ``male and female penguins`` are two; counts and totals of them are one.
    """
    is_each = parts.mark("each") is not None or any(cond.is_compared for cond in conds)
    counts = {atom.end for atom, fn in parts.every(Fn) if fn.function == "count"}
    is_each = is_each or any(  # "how many men and women"
        atom.start in counts and cond.is_list for atom, cond in parts.every(Cond)
    )
    adds_up = all(measure.function in ("count", "sum", "nunique") for measure in found)
    if not adds_up and (seasons := _SEASONS.search(parts.words.text)):
        raise UnfitError(seasons[0], "Ask for each season alone.")
    listed = [cond for cond in conds if cond.is_list and not cond.is_negative]
    if not listed:
        if is_each:
            raise UnfitError("compare", "Name the values to compare, joined by “and”.")
        return ()
    if adds_up and not is_each:
        return ()
    keys = []
    for cond in listed:
        condition = cond.options[0].condition
        if isinstance(condition, OneOf):
            keys.append(GroupKey(condition.column))
        elif isinstance(condition, Or):
            keys += _time_keys(condition)
    return tuple(dict.fromkeys(keys))


def _time_keys(condition: Or) -> list[GroupKey]:
    found = []
    for part in condition.parts:
        if isinstance(part, During):
            is_year = part.start.endswith("-01-01") and part.end.endswith("-01-01")
            found.append(GroupKey(part.column, unit="year" if is_year else "month"))
    return found


def is_single(parts: Phrases, key: str, where: Condition | None) -> bool:
    """Return whether each group of a key has about one row under a condition."""
    return expected_rows(parts, where) <= parts.distinct(key) * 1.1


def is_unique(parts: Phrases, name: str) -> bool:
    """Return whether a column has another value in each row, so that counts mean nothing."""
    return parts.distinct(name) >= parts.scope.rows > 1


def is_one_row(parts: Phrases, where: Condition | None) -> bool:
    """Return whether a condition is expected to leave one row."""
    return expected_rows(parts, where) <= 1.1


def expected_rows(parts: Phrases, where: Condition | None) -> float:
    """Return the number of rows under a condition, if its columns are independent."""
    scope = parts.scope
    rows = float(scope.rows)
    for part in conjuncts(where):
        if isinstance(part, Comparison) and part.operator == "==" and isinstance(part.left, Column):
            rows /= max(scope.columns[part.left.name].distinct, 1)
        elif isinstance(part, OneOf):
            rows *= len(part.values) / max(scope.columns[part.column].distinct, 1)
        elif isinstance(part, During) and part.start and part.end:
            profile = scope.columns[part.column]
            first, last = profile.low[:4], profile.high[:4]
            if first.isdigit() and last.isdigit():
                rows *= (int(part.end[:4]) - int(part.start[:4]) or 1) / (
                    int(last) - int(first) + 1
                )
    return rows


def conjuncts(where: Condition | None) -> tuple[Condition, ...]:
    """Return the conditions that all hold under a condition."""
    if where is None:
        return ()
    return where.parts if isinstance(where, And) else (where,)


def as_measure(pick: Pick, value: Expression) -> Measure:
    """Return the measure of a superlative: largest, smallest, or n-th of them."""
    if pick.nth:
        return Measure("nth", value, n=-pick.nth if pick.ascending else pick.nth)
    return Measure("min" if pick.ascending else "max", value)
