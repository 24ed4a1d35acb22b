"""Composition of the phrases of a request into one reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taskweaver.analyst.language.atoms import (
    AggregateStep,
    Atom,
    Dimension,
    Fn,
    Keys,
    Look,
    Mark,
    Noun,
    Pick,
)
from taskweaver.analyst.language.checks import check, check_unused
from taskweaver.analyst.language.groups import (
    NUMERIC,
    compared,
    conjuncts,
    is_one_row,
    is_unique,
    measures,
)
from taskweaver.analyst.language.looks import looked, pictured
from taskweaver.analyst.language.names import is_amount, singular
from taskweaver.analyst.language.parser import Operand, Words
from taskweaver.analyst.language.parts import Phrases, UnclearError, UnfitError, is_of_rows
from taskweaver.analyst.language.ranks import ranked
from taskweaver.analyst.language.steps import stepped
from taskweaver.analyst.language.values import Cond, Option, conjunction
from taskweaver.analyst.readings import (
    Arithmetic,
    Column,
    Comparison,
    Condition,
    GroupKey,
    Measure,
    Missing,
    Not,
    OneOf,
    Rank,
    Reading,
    Rows,
    Summary,
    TableView,
    Understood,
)

UNCOMPUTED = "Only what can be counted or computed from the rows is answered."


def compose(words: Words, atoms: Sequence[Atom]) -> Understood:
    """Return the reading that phrases make.

    Raises:
        UnfitError: If they make none.
        UnclearError: If they make several.
    """
    parts = Phrases(words, atoms)
    _refuse(parts)
    skipped = check_unused(parts)
    _join_sides(parts)
    reading = (
        pictured(parts)
        or looked(parts)
        or _compared_groups(parts)
        or stepped(parts)
        or ranked(parts)
        or _summary(parts)
        or _rows(parts)
    )
    if reading is None:
        raise UnfitError([parts.phrase(atom) for atom in parts.left])
    reading = _sorted(parts, reading)
    parts.finish()
    check(reading, parts)
    unused = tuple(dict.fromkeys((*skipped, *parts.unused)))
    return Understood(reading, unused, tuple(dict.fromkeys(parts.notes)))


def _join_sides(parts: Phrases) -> None:
    """Join two values of a column that are compared: ``men earn more than women``."""
    is_compared = parts.has_mark("each more than")
    if not is_compared or parts.has(AggregateStep) or parts.has(Pick):
        return
    sides: dict[str, list[tuple[Atom, Comparison]]] = {}
    for atom, cond in parts.all(Cond):
        name, condition = cond.options[0].column, cond.options[0].condition
        is_value = isinstance(condition, Comparison) and condition.operator == "=="
        if isinstance(condition, Comparison) and is_value and len(cond.options) == 1:
            sides.setdefault(name, []).append((atom, condition))
    for name, found in sides.items():
        values = tuple(one.right for _, one in found if isinstance(one.right, str | int | bool))
        if len(found) == len(values) == 2:
            phrase = parts.words.raw(found[0][0].start, found[1][0].end)
            option = Option(name, OneOf(name, values))
            joined = Cond((option,), phrase, is_list=True, is_compared=True, is_bare=True)
            parts.left[parts.left.index(found[0][0])] = replace(found[0][0], content=joined)
            parts.use(found[1][0])


def _sorted(parts: Phrases, reading: Reading) -> Reading:
    """Return a reading of groups in the order that a request asks for."""
    if not isinstance(reading, Summary) or not reading.keys or reading.rank:
        return reading
    return replace(reading, rank=parts.order())


def _refuse(parts: Phrases) -> None:
    refused = [mark.detail for _, mark in parts.all(Mark) if mark.kind == "refused"]
    if refused:
        raise UnfitError(refused, UNCOMPUTED)
    if parts.has_mark("files"):
        raise UnfitError("files")


def _compared_groups(parts: Phrases) -> Reading | None:
    """Return the mean or number of rows of groups: ``who earns more, men or women``."""
    single = [
        (cond, cond.options[0])
        for _, cond in parts.all(Cond)
        if len(cond.options) == 1 and not cond.is_negative
    ]
    listed = [pair for pair in single if isinstance(pair[1].condition, OneOf)]
    sides = listed or [pair for pair in single if _is_one_of_two(parts, pair[1])]
    is_asked = parts.has_mark("more")
    is_asked = is_asked or parts.has(Dimension, lambda dimension: dimension.is_comparative)
    others = any(map(parts.has, (Fn, AggregateStep, Pick, Keys)))
    if others or len(sides) != 1 or not (is_asked or sides[0][0].is_compared):
        return None
    cond, option = sides[0]
    dimension = parts.take(Dimension)
    operand = parts.take(Operand, lambda one: all(map(parts.words.is_numeric, one.names)))
    if dimension and operand is None:
        operand = Operand(tuple(map(Column, dimension.columns)), dimension.word)
    value = parts.column_of(operand, kinds=NUMERIC) if operand else None
    if value is None and not is_asked and parts.scope.time_columns:
        raise UnfitError(cond.phrase, "Say which column is compared.")
    if isinstance(value, Column) and is_amount(value.name):
        raise UnfitError(value.name, f"Say mean or total of {value.name}.")
    parts.mark("more who which than")
    measure = Measure("mean", value) if value else Measure("count")
    where = parts.where()
    return Summary(parts.source, (measure,), (GroupKey(option.column),), where if listed else None)


def _is_one_of_two(parts: Phrases, option: Option) -> bool:
    """Return whether a condition is one of the two values of a column."""
    condition = option.condition
    is_value = isinstance(condition, Comparison) and condition.operator == "=="
    return is_value and bool(option.column) and parts.distinct(option.column) == 2


def _summary(parts: Phrases) -> Reading | None:
    """Return measures of all rows or of groups."""
    if parts.has(AggregateStep) or parts.has(Pick):
        return None
    dimension = parts.take(Dimension)
    if dimension is not None:
        return _of_dimension(parts, dimension)
    if not parts.has(Fn):
        return _product(parts)
    parts.mark("much")
    mode = parts.take(Fn, lambda fn: fn.function == "mode")
    if mode is not None:
        return _mode(parts, mode)
    conds = parts.conditions()
    where = parts.condition(conds)
    keys = parts.keys()
    if parts.has(Fn, lambda fn: fn.function == "count"):
        parts.take_all(Look, lambda look: look.view == "values")
    if _counts_rows(parts):
        parts.take_all(Fn)
        found: tuple[Measure, ...] = (Measure("count"),)
    else:
        found = measures(parts)
    where = _without_missing(where, conds, found)
    if parts.mark("combined") is None:
        keys = tuple(dict.fromkeys((*keys, *compared(parts, conds, found))))
    if parts.mark("over") is not None:
        raise UnfitError("over time", "Say the period: “per year”, “per month”.")
    return Summary(parts.source, found, keys, where)


def _without_missing(
    where: Condition | None, conds: Sequence[Cond], found: Sequence[Measure]
) -> Condition | None:
    """Return a condition where ``ignoring missing values`` is about the measured columns alone."""
    is_ignored = any(
        cond.phrase.casefold().startswith(("ignor", "exclud", "skip")) for cond in conds
    )
    names = [measure.of.name for measure in found if isinstance(measure.of, Column)]
    if not is_ignored or not names or where is None:
        return where
    kept = [part for part in conjuncts(where) if part != Not(Missing(""))]
    return conjunction(*kept)


def _product(parts: Phrases) -> Reading | None:
    """Return the total of a product per group: ``revenue (quantity times price) per year``."""
    products = [
        (atom, operand)
        for atom, operand in parts.all(Operand)
        if isinstance(operand.options[0], Arithmetic) and operand.options[0].operator == "*"
    ]
    if not products and parts.has(Keys):
        return _of_choice(parts) or _counted_groups(parts)
    if len(products) != 1 or not parts.has(Keys):
        return None
    parts.use(products[0][0])
    where = parts.where()
    value = parts.column_of(products[0][1])
    return Summary(parts.source, (Measure("sum", value),), parts.keys(), where)


def _counted_groups(parts: Phrases) -> Reading | None:
    """Return the number of rows of groups: ``flights per day``."""
    has_rows = parts.has(Noun, is_of_rows)
    has_rows = has_rows or _begins_with_values(parts)
    entities = [atom for atom, operand in parts.all(Operand) if parts.names_each_row(operand)]
    others = len(parts.all(Operand)) - len(entities)
    if not (has_rows or entities) or others or parts.has(Dimension):
        return None
    for atom in entities:
        parts.use(atom)
    return Summary(parts.source, (Measure("count"),), parts.keys(), parts.where())


def _begins_with_values(parts: Phrases) -> bool:
    """Return whether a value in the plural stands for rows: ``women per class``."""
    first = parts.atoms[0]
    last = parts.words.lower(first.end - 1)
    return isinstance(first.content, Cond) and first.content.is_bare and singular(last) != last


def _of_choice(parts: Phrases) -> Reading | None:
    """Ask for the function of ``sales by region``, or use the one that was chosen."""
    numbers = [
        (atom, operand)
        for atom, operand in parts.all(Operand)
        if not operand.is_arithmetic and all(parts.words.is_numeric(name) for name in operand.names)
    ]
    if len(numbers) != 1 or parts.has(Dimension):
        return None
    parts.use(numbers[0][0])
    value = parts.column_of(numbers[0][1])
    phrase = numbers[0][1].phrase
    choice = parts.scope.choices.get(f"of {phrase}".casefold())
    key = _only_key(parts)
    adds_up = bool(key) and isinstance(value, Column) and is_amount(value.name, is_certain=True)
    is_plain = key is not None and not key.unit and not parts.scope.time_columns
    is_one_each = key is not None and is_unique(parts, key.column) and not key.unit
    if (adds_up and is_plain) or is_one_each or parts.mark("much"):
        choice = "total"
    if choice not in ("total", "mean"):
        raise UnclearError(f"of {phrase}", ("total", "mean"))
    where = parts.where()
    measure = Measure("sum" if choice == "total" else "mean", value)
    return Summary(parts.source, (measure,), parts.keys(), where)


def _only_key(parts: Phrases) -> GroupKey | None:
    """Return the group key that a request names, if it is one."""
    options = [options for _, keys in parts.all(Keys) for options in keys.keys]
    return options[0][0] if len(options) == 1 and len(options[0]) == 1 else None


def _counts_rows(parts: Phrases) -> bool:
    """Return whether ``how many`` goes with a noun for rows."""
    fns = parts.all(Fn)
    if len(fns) == 2 and not parts.has(Operand):  # "how many rows in total"
        fns = [found for found in fns if found[1].function != "sum"]
    if len(fns) != 1 or fns[0][1].function != "count":
        return False
    after = [
        atom.content
        for atom in parts.left
        if atom.start >= fns[0][0].end and isinstance(atom.content, Noun | Operand)
    ]
    return not after or isinstance(after[0], Noun)


def _mode(parts: Phrases, fn: Fn) -> Reading:
    """Return the commonest or rarest value of a column."""
    parts.mark("which who")
    where = parts.where()
    keys = parts.keys()
    operand = parts.take(Operand)
    if operand is None:
        raise UnfitError("most common", "Name the column whose values are counted.")
    value = parts.column_of(operand)
    parts.take_all(Fn, lambda other: other.function == "count")
    if not isinstance(value, Column) or is_unique(parts, value.name):
        raise UnfitError(operand.phrase)
    if keys:
        if fn.is_least:
            raise UnfitError("least common")
        return Summary(parts.source, (Measure("mode", value),), keys, where)
    keys = (GroupKey(value.name),)
    rank = Rank(fn.is_least, 1)
    return Summary(parts.source, (Measure("count"),), keys, where, rank=rank, names_winner=True)


def _of_dimension(parts: Phrases, dimension: Dimension) -> Reading:
    """Return the reading of ``how heavy is a Gentoo penguin on average``."""
    if dimension.is_comparative:
        raise UnfitError(parts.words.text.split()[0], "Name the two sets of rows to compare.")
    conds = parts.conditions()
    fn = parts.take(Fn)
    operand = parts.take(Operand)
    keys = parts.keys()
    options = tuple(Column(name) for name in dimension.columns)
    if operand is not None and set(operand.names) & set(dimension.columns):
        options = tuple(Column(name) for name in operand.names if name in dimension.columns)
    elif operand is not None:
        raise UnfitError(operand.phrase)
    value = parts.column_of(Operand(options, dimension.word), kinds=NUMERIC)
    where = parts.condition(conds)
    if fn is None:
        if parts.words.has("get"):
            fn = Fn("min" if dimension.ascending else "max")
        elif keys or where is None:
            raise UnfitError(options[0].name, f"Say mean, maximum or median of {options[0].name}.")
        else:
            return Rows(parts.source, (options[0].name,), where)
    return Summary(parts.source, (Measure(fn.function, value, quantile=fn.quantile),), keys, where)


def _rows(parts: Phrases) -> Reading | None:
    """Return values or rows that satisfy a condition: ``population of India in 2007``."""
    if parts.has(AggregateStep) or parts.has(Pick) or parts.has(Fn):
        return None
    conds = parts.conditions()
    if not conds:
        return None
    names = []
    computed = parts.take(Operand, lambda operand: operand.is_arithmetic)
    if computed is not None:
        return _computed(parts, computed, conds)
    for operand in parts.take_all(Operand):
        value = parts.column_of(operand)
        if not isinstance(value, Column):
            raise UnfitError(operand.phrase, f"Say mean, total or median of {operand.phrase}.")
        names.append(value.name)
    where = parts.condition(conds)
    return _shown(parts, conds, tuple(dict.fromkeys(names)), where)


def _shown(
    parts: Phrases, conds: Sequence[Cond], names: tuple[str, ...], where: Condition | None
) -> Reading:
    """Return the total, the values or the rows that columns have under a condition."""
    if not names and _are_named_rows(parts, conds):
        parts.mark("each")
        return Rows(parts.source, (), where)
    is_which = parts.mark("which who when") is not None
    if is_which and any(cond.is_negative for cond in conds):
        raise UnfitError([cond.phrase for cond in conds if cond.is_negative])
    if len(names) == 1 and _adds_up(parts, names[0], where):
        parts.mark("much")
        return Summary(parts.source, (Measure("sum", Column(names[0])),), (), where)
    if len(names) == 1 and _repeats(parts, names[0]):
        return TableView(parts.source, "values", names, where)
    is_shown = parts.has(Noun, is_of_rows) or _begins_with_values(parts)
    if not names and not is_shown:
        raise UnfitError(
            [cond.phrase for cond in conds], "Say which value of these rows is asked for."
        )
    return Rows(parts.source, names, where)


def _adds_up(parts: Phrases, name: str, where: Condition | None) -> bool:
    """Return whether an amount of rows is its total: ``sales in Texas``."""
    is_total = is_amount(name, is_certain=True) and parts.words.is_numeric(name)
    is_asked = not parts.scope.time_columns or parts.has_mark("much")
    is_many = is_total and is_asked and not is_one_row(parts, where)
    return is_many and not parts.has_mark("which who when")


def _are_named_rows(parts: Phrases, conds: Sequence[Cond]) -> bool:
    """Return whether nothing but names of rows is said: ``compare Germany and Japan``."""
    columns = {option.column for cond in conds for option in cond.options}
    is_alone = not any(atom.content not in conds for atom in parts.left if _is_said(atom))
    is_bare = len(conds) == 1 and conds[0].is_bare
    return is_alone and is_bare and all(name and is_unique(parts, name) for name in columns)


def _is_said(atom: Atom) -> bool:
    return not (isinstance(atom.content, Mark) and atom.content.kind == "each")


def _repeats(parts: Phrases, name: str) -> bool:
    profile = parts.words.profile(name)
    return profile.kind == "text" and profile.distinct < parts.scope.rows


def _computed(parts: Phrases, operand: Operand, conds: Sequence[Cond]) -> Reading:
    """Return arithmetic of the columns of a single row."""
    where = parts.condition(conds)
    if not is_one_row(parts, where):
        raise UnfitError(operand.phrase, f"Say mean, total or median of {operand.phrase}.")
    return Summary(parts.source, (Measure("mean", parts.column_of(operand)),), (), where)
