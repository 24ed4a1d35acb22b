"""Composition of the phrases of a request into one reading."""

from __future__ import annotations

from collections.abc import Sequence

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
from taskweaver.analyst.language.names import singular
from taskweaver.analyst.language.parser import Operand, Words
from taskweaver.analyst.language.parts import Phrases, UnclearError, UnfitError
from taskweaver.analyst.language.ranks import ranked
from taskweaver.analyst.language.steps import stepped
from taskweaver.analyst.language.values import Cond, conjunction
from taskweaver.analyst.readings import (
    Arithmetic,
    Column,
    Condition,
    GroupKey,
    Measure,
    Missing,
    Not,
    Rank,
    Reading,
    Rows,
    Summary,
    TableView,
    Understood,
)


def compose(words: Words, atoms: Sequence[Atom]) -> Understood:
    """Return the reading that phrases make.

    Raises:
        UnfitError: If they make none.
        UnclearError: If they make several.
    """
    parts = Phrases(words, atoms)
    _refuse(parts)
    skipped = check_unused(parts)
    reading = (
        pictured(parts)
        or looked(parts)
        or stepped(parts)
        or ranked(parts)
        or _summary(parts)
        or _rows(parts)
    )
    if reading is None:
        raise UnfitError([parts.phrase(atom) for atom in parts.left])
    parts.finish()
    check(reading, parts)
    unused = tuple(dict.fromkeys((*skipped, *parts.unused)))
    return Understood(reading, unused, tuple(dict.fromkeys(parts.notes)))


def _refuse(parts: Phrases) -> None:
    refused = [mark.detail for _, mark in parts.all(Mark) if mark.kind == "refused"]
    if refused:
        raise UnfitError(refused, "Only what can be counted or computed from the rows is answered.")
    if parts.has(Mark, lambda mark: mark.kind == "files"):
        raise UnfitError(("files",))


def _summary(parts: Phrases) -> Reading | None:
    """Return measures of all rows or of groups."""
    if parts.has(AggregateStep) or parts.has(Pick):
        return None
    dimension = parts.take(Dimension)
    if dimension is not None:
        return _of_dimension(parts, dimension)
    if not parts.has(Fn):
        return _product(parts)
    mode = parts.take(Fn, lambda fn: fn.function == "mode")
    if mode is not None:
        return _mode(parts, mode)
    conds = parts.conditions()
    where = parts.condition(conds)
    keys = parts.keys()
    if parts.has(Fn, lambda fn: fn.function == "count"):
        parts.take_all(Look, lambda look: look.view == "values")
    if _counts_rows(parts):
        parts.take(Fn)
        found: tuple[Measure, ...] = (Measure("count"),)
    else:
        found = measures(parts)
    where = _without_missing(where, conds, found)
    if parts.mark("combined") is None:
        keys = tuple(dict.fromkeys((*keys, *compared(parts, conds, found))))
    if parts.mark("over") is not None:
        raise UnfitError(("over time",), "Say the period: “per year”, “per month”.")
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
    has_rows = parts.has(Noun, lambda noun: noun.kind in ("row", "file", "thing", "person"))
    entities = [atom for atom, operand in parts.all(Operand) if _names_each_row(parts, operand)]
    others = len(parts.all(Operand)) - len(entities)
    if not (has_rows or entities) or others or parts.has(Dimension):
        return None
    for atom in entities:
        parts.use(atom)
    return Summary(parts.source, (Measure("count"),), parts.keys(), parts.where())


def _names_each_row(parts: Phrases, operand: Operand) -> bool:
    """Return whether a column of texts is named in the plural and has another value in each row."""
    low = operand.phrase.casefold()
    if len(operand.names) != 1 or singular(low) == low or operand.distance > 1:
        return False
    profile = parts.words.profile(operand.names[0])
    return profile.kind == "text" and profile.distinct == parts.scope.rows


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
    if choice not in ("total", "mean"):
        raise UnclearError(f"of {phrase}", ("total", "mean"))
    where = parts.where()
    measure = Measure("sum" if choice == "total" else "mean", value)
    return Summary(parts.source, (measure,), parts.keys(), where)


def _counts_rows(parts: Phrases) -> bool:
    """Return whether ``how many`` goes with a noun for rows."""
    fns = parts.all(Fn)
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
    parts.mark("which", "who")
    where = parts.where()
    keys = parts.keys()
    operand = parts.take(Operand)
    if operand is None:
        raise UnfitError(("most common",), "Name the column whose values are counted.")
    value = parts.column_of(operand)
    parts.take_all(Fn, lambda other: other.function == "count")
    if not isinstance(value, Column) or is_unique(parts, value.name):
        raise UnfitError((operand.phrase,))
    if keys:
        if fn.is_least:
            raise UnfitError(("least common",))
        return Summary(parts.source, (Measure("mode", value),), keys, where)
    keys = (GroupKey(value.name),)
    rank = Rank(fn.is_least, 1)
    return Summary(parts.source, (Measure("count"),), keys, where, rank=rank, names_winner=True)


def _of_dimension(parts: Phrases, dimension: Dimension) -> Reading:
    """Return the reading of ``how heavy is a Gentoo penguin on average``."""
    if dimension.is_comparative:
        raise UnfitError((parts.words.text.split()[0],), "Name the two sets of rows to compare.")
    conds = parts.conditions()
    fn = parts.take(Fn)
    operand = parts.take(Operand)
    keys = parts.keys()
    options = tuple(Column(name) for name in dimension.columns)
    if operand is not None and set(operand.names) & set(dimension.columns):
        options = tuple(Column(name) for name in operand.names if name in dimension.columns)
    elif operand is not None:
        raise UnfitError((operand.phrase,))
    value = parts.column_of(Operand(options, dimension.word), kinds=NUMERIC)
    where = parts.condition(conds)
    if fn is None:
        if "get" in {parts.words.lower(place) for place in range(parts.words.size)}:
            fn = Fn("min" if dimension.ascending else "max")
        elif keys or where is None:
            raise UnfitError(
                (options[0].name,), f"Say mean, maximum or median of {options[0].name}."
            )
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
            raise UnfitError((operand.phrase,), f"Say mean, total or median of {operand.phrase}.")
        names.append(value.name)
    where = parts.condition(conds)
    is_which = parts.mark("which", "who", "when") is not None
    if is_which and any(cond.is_negative for cond in conds):
        raise UnfitError([cond.phrase for cond in conds if cond.is_negative])
    if len(names) == 1 and _repeats(parts, names[0]):
        return TableView(parts.source, "values", (names[0],), where)
    is_shown = parts.has(Noun, lambda noun: noun.kind != "unit")
    if not names and not is_shown:
        raise UnfitError(
            [cond.phrase for cond in conds], "Say which value of these rows is asked for."
        )
    return Rows(parts.source, tuple(dict.fromkeys(names)), where)


def _repeats(parts: Phrases, name: str) -> bool:
    profile = parts.words.profile(name)
    return profile.kind == "text" and profile.distinct < parts.scope.rows


def _computed(parts: Phrases, operand: Operand, conds: Sequence[Cond]) -> Reading:
    """Return arithmetic of the columns of a single row."""
    where = parts.condition(conds)
    if not is_one_row(parts, where):
        raise UnfitError((operand.phrase,), f"Say mean, total or median of {operand.phrase}.")
    return Summary(parts.source, (Measure("mean", parts.column_of(operand)),), (), where)
