"""Readings with a step after the aggregation: shares, differences, changes, running totals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from taskweaver.analyst.language.atoms import (
    AggregateStep,
    Atom,
    Dimension,
    Fn,
    Keys,
    Mark,
    Noun,
    Pick,
)
from taskweaver.analyst.language.groups import NUMERIC, is_one_row, measures
from taskweaver.analyst.language.names import name_words
from taskweaver.analyst.language.parser import Operand
from taskweaver.analyst.language.parts import Phrases, UnfitError, is_of_rows
from taskweaver.analyst.language.values import Cond, conjunction, one_of, typed
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    Contrast,
    Cumulative,
    During,
    GroupKey,
    Measure,
    Not,
    PeriodChange,
    Rank,
    Reading,
    Share,
    Summary,
    columns_in,
    columns_of,
)

_ROWS = re.compile(r"\b(?:rows?|records?|entries|lines|zeilen|einträge)\b", re.IGNORECASE)


def stepped(parts: Phrases) -> Reading | None:
    """Return the reading of a request with a step after the aggregation; None if it has none."""
    steps = [step for _, step in parts.all(AggregateStep)]
    if not steps:
        dimension = [d for _, d in parts.all(Dimension) if d.is_comparative]
        return _contrast(parts) if dimension and _sides(parts) else None
    kinds = {step.kind for step in steps}
    details = {step.detail for step in steps}
    if kinds == {"share"}:
        return _share(parts)
    if kinds == {"cumulative"}:
        return _cumulative(parts)
    if "diff" in kinds and kinds <= {"diff", "change", "share"}:
        return _contrast(parts, is_relative="share" in kinds or "rel" in details)
    if kinds <= {"change", "share"}:
        is_relative = "share" in kinds or any(detail.startswith("rel") for detail in details)
        if (
            _sides(parts)
            and not parts.has(AggregateStep, lambda step: bool(step.unit))
            and not parts.has(Keys)
        ):
            return _contrast(parts, is_relative=is_relative)
        return _change(parts, is_relative=is_relative)
    raise UnfitError([step.kind for step in steps])


# -- shares ---------------------------------------------------------------------------------------


def _share(parts: Phrases) -> Reading:
    step = next(atom for atom, _ in parts.all(AggregateStep))
    parts.take_all(AggregateStep)
    conds = [(atom, cond) for atom, cond in parts.all(Cond)]
    keys = parts.keys()
    parts.mark("which who")
    measure = _total(parts)
    if measure == Measure("count"):
        _check_unit(parts)
    if keys:
        inner = [cond for cond in parts.conditions() if not cond.is_time]
        times = [cond for _, cond in conds if cond.is_time]
        if len(inner) > 1:
            raise UnfitError([cond.phrase for cond in inner], "Say which rows are the whole.")
        where = parts.condition(times)
        return Summary(parts.source, (measure,), keys, where, Share(parts.condition(inner)))
    texts = [
        (atom, operand)
        for atom, operand in parts.all(Operand)
        if len(operand.names) == 1
        and parts.scope.flag_value(operand.names[0]) is None
        and parts.kind(operand.names[0]) in ("text", "flag")
    ]
    if not conds and parts.words.has("with having without"):
        raise UnfitError("share", "Say of which rows the share is.")
    if texts and not conds:
        if measure.of is not None and parts.has(Noun, is_of_rows):
            added = ", ".join(columns_of(measure.of))
            raise UnfitError((), f"Say whether rows are counted or `{added}` is added up.")
        parts.use(texts[0][0])
        return Summary(parts.source, (measure,), (GroupKey(texts[0][1].names[0]),), None, Share())
    if not conds:
        raise UnfitError("share", "Say of which rows the share is.")
    inside, outside = _split(parts, conds, step)
    for atom, _ in conds:
        parts.use(atom)
    where = parts.condition(outside)
    part = parts.condition(inside)
    return Summary(parts.source, (measure,), (), where, Share(part))


def _check_unit(parts: Phrases) -> None:
    """Refuse the share of rows where each combination of groups has one row, with its value."""
    columns = parts.scope.columns.values()
    values = [c for c in columns if c.kind in NUMERIC and "year" not in name_words(c.name)]
    groups = [column.distinct for column in columns if column not in values]
    is_long = len(groups) > 1 and prod(groups) == parts.scope.rows
    if is_long and len(values) == 1 and not _ROWS.search(parts.words.text):
        raise UnfitError((), f"Say whether it is a share of rows or of `{values[0].name}`.")


def _total(parts: Phrases) -> Measure:
    """Return the measure a share is of: a total, or a count of rows."""
    fns = parts.take_all(Fn)
    if any(fn.function not in ("sum", "count") for fn in fns):
        raise UnfitError([fn.function for fn in fns], "A share is of a total or a count.")
    numeric = [
        (atom, operand)
        for atom, operand in parts.all(Operand)
        if operand.is_arithmetic
        or any(
            parts.kind(name) in NUMERIC and parts.scope.flag_value(name) is None
            for name in operand.names
        )
    ]
    if numeric and not any(fn.function == "count" for fn in fns):
        parts.use(numeric[0][0])
        return Measure("sum", parts.column_of(numeric[0][1], kinds=NUMERIC))
    return Measure("count")


def _split(
    parts: Phrases, conds: Sequence[tuple[Atom, Cond]], step: Atom
) -> tuple[list[Cond], list[Cond]]:
    """Return the conditions on the part, and those on the whole: before the verb."""
    if (place := _stated_part(parts, conds, step)) is not None:
        return [conds[place][1]], [cond for at, (_, cond) in enumerate(conds) if at != place]
    if (whole := _whole_at(parts)) is not None:
        inside = [cond for atom, cond in conds if atom.start < whole]
        outside = [cond for atom, cond in conds if atom.start > whole]
        if not inside or not outside:
            phrases = [cond.phrase for _, cond in conds]
            raise UnfitError(phrases, "Say which rows are the whole: “of … are …”.")
        return inside, outside
    verbs = [
        atom.start
        for atom, mark in parts.every(Mark)
        if mark.kind == "verb" or mark.detail in ("who", "that", "which")
    ]
    last = max(atom.start for atom, _ in conds)
    verb = next((at for at in verbs if step.start < at < last), None)
    if verb is None:
        timeless = [cond for _, cond in conds if not cond.is_time]
        if len(timeless) == 1:
            return timeless, [cond for _, cond in conds if cond.is_time]
        raise UnfitError(
            [cond.phrase for _, cond in conds], "Say which rows are the whole: “of … are …”."
        )
    before = [cond for atom, cond in conds if atom.start < verb]
    after = [cond for atom, cond in conds if atom.start > verb]
    timeless = [cond for cond in after if not cond.is_time]
    if timeless and len(timeless) < len(after):
        return timeless, before + [cond for cond in after if cond.is_time]
    return after, before


def _stated_part(parts: Phrases, conds: Sequence[tuple[Atom, Cond]], step: Atom) -> int | None:
    """Return the place of the condition that is the part of a share by its words alone."""
    if len(conds) == 1 or (conds[0][0].end == step.start and conds[0][1].is_bare):
        return 0  # "survival rate of men"
    column = conds[-1][1].options[0].column
    is_flag = bool(column) and parts.scope.flag_value(column) is not None
    is_of = parts.words.lower(step.end - 1) == "of" and conds[0][0].start == step.end
    return len(conds) - 1 if is_flag and is_of else None  # "percentage of men survived"


def _whole_at(parts: Phrases) -> int | None:
    """Return the place of a word that introduces the whole of a share: ``among``."""
    words = parts.words
    found = [at for at in range(words.size) if words.says(at, "among amongst within")]
    return found[0] if len(found) == 1 else None


# -- differences ----------------------------------------------------------------------------------


def _sides(parts: Phrases) -> tuple[Condition, Condition] | None:
    """Return two sets of rows to compare, as they are named; None if there are not two."""
    conds = [cond for _, cond in parts.all(Cond) if len(cond.options) == 1]
    if len(conds) == 1 and parts.has_mark("others"):
        one = conds[0].options[0].condition
        return one, Not(one)
    if len(conds) == 1 and not parts.has_mark("than") and parts.has(Dimension):
        option = conds[0].options[0]
        no = parts.scope.no_value(option.column) if option.column else None
        if no and isinstance(option.condition, Comparison):
            other = one_of(option.column, (typed(no, parts.words, option.column),))
            return (option.condition, other) if option.condition != other else None
    singles = _same_column(parts)
    return singles if singles else _years(parts)


def _same_column(parts: Phrases) -> tuple[Condition, Condition] | None:
    by_column: dict[str, list[Condition]] = {}
    for _, cond in parts.all(Cond):
        if len(cond.options) == 1 and not cond.is_negative:
            condition = cond.options[0].condition
            is_value = isinstance(condition, Comparison) and condition.operator == "=="
            if is_value or isinstance(condition, During):
                by_column.setdefault(cond.options[0].column, []).append(condition)
    pairs = [conditions for conditions in by_column.values() if len(conditions) == 2]
    return (pairs[0][0], pairs[0][1]) if len(pairs) == 1 else None


def _years(parts: Phrases) -> tuple[Condition, Condition] | None:
    """Return the first and the last year of ``from 2004 to 2005``, the later one first."""
    for _, cond in parts.all(Cond):
        condition = cond.options[0].condition
        if not cond.is_time or len(cond.options) != 1:
            continue
        if isinstance(condition, And) and len(condition.parts) == 2:
            low, high = condition.parts
            if isinstance(low, Comparison) and isinstance(high, Comparison):
                return Comparison(high.left, "==", high.right), Comparison(
                    low.left, "==", low.right
                )
        if isinstance(condition, During) and condition.start and condition.end:
            first, last = int(condition.start[:4]), int(condition.end[:4]) - 1
            is_years = condition.start.endswith("-01-01") and condition.end.endswith("-01-01")
            if is_years and last > first:
                name = condition.column
                return (
                    During(name, f"{last:04}-01-01", f"{last + 1:04}-01-01"),
                    During(name, f"{first:04}-01-01", f"{first + 1:04}-01-01"),
                )
    return None


def _contrast(parts: Phrases, *, is_relative: bool = False) -> Reading:
    sides = _sides(parts)
    if sides is None:
        raise UnfitError("difference", "Name the two sets of rows to compare.")
    steps = parts.take_all(AggregateStep)
    _use_sides(parts, sides)
    first, second = sides
    if _is_later(second, first) and any(step.kind == "change" for step in steps):
        first, second = second, first
    dimension = parts.take(Dimension)
    is_less = any(step.detail == "less" for step in steps) or (dimension and dimension.ascending)
    keys = parts.keys()
    where = parts.where()
    fn = _contrast_measure(parts, dimension, conjunction(where, first))
    parts.mark("which each over between than others")
    if is_less:
        first, second = second, first
    return Summary(parts.source, (fn,), keys, where, Contrast(first, second, is_relative))


def _contrast_measure(
    parts: Phrases, dimension: Dimension | None, side: Condition | None
) -> Measure:
    if dimension is not None and not any(operand for _, operand in parts.all(Operand)):
        fn = parts.take(Fn) or Fn("mean")
        value = parts.column_of(Operand(tuple(map(Column, dimension.columns)), dimension.word))
        return Measure(fn.function, value, quantile=fn.quantile)
    if not parts.has(Fn) and parts.has(Operand):
        operand = next(operand for _, operand in parts.all(Operand))
        if is_one_row(parts, side):
            parts.take(Operand)
            return Measure("mean", parts.column_of(operand, kinds=NUMERIC))
        raise UnfitError(operand.phrase, f"Say mean, total or median of {operand.phrase}.")
    if not parts.has(Fn):
        if parts.has(Noun, is_of_rows):
            return Measure("count")
        raise UnfitError("difference", "Say of which measure: mean, total, median.")
    found = measures(parts)
    if len(found) != 1:
        raise UnfitError("difference", "A difference is of one measure.")
    return found[0]


def _use_sides(parts: Phrases, sides: tuple[Condition, Condition]) -> None:
    names = columns_in(sides[0])
    for atom, cond in parts.all(Cond):
        if len(cond.options) == 1 and columns_in(cond.options[0].condition) == names:
            parts.use(atom)
    parts.mentioned.update(names)


def _is_later(left: Condition, right: Condition) -> bool:
    if isinstance(left, During) and isinstance(right, During):
        return left.start > right.start
    if not isinstance(left, Comparison) or not isinstance(right, Comparison):
        return False
    values = (left.right, right.right)
    return isinstance(values[0], int) and isinstance(values[1], int) and values[0] > values[1]


# -- changes and running totals -------------------------------------------------------------------


def _change(parts: Phrases, *, is_relative: bool) -> Reading:
    steps = parts.take_all(AggregateStep)
    units = [step.unit for step in steps if step.unit]
    keys = list(parts.keys())
    times = list(parts.scope.time_columns)
    if not keys and units and len(times) == 1:
        is_time = parts.kind(times[0]) == "time"
        if not is_time and units[0] != "year":
            raise UnfitError(units[0])
        keys = [GroupKey(times[0], unit=units[0] if is_time else None)]  # type: ignore[arg-type]
    if not keys:
        raise UnfitError("change", "Say between which times: “per year”, “from 2004 to 2005”.")
    parts.mark("over")
    pick = parts.take(Pick)
    where = parts.where()
    found = _changed(parts, keys[0])
    rank = _extreme(pick, steps)
    parts.mentioned.update(key.column for key in keys)
    return Summary(parts.source, (found,), tuple(keys), where, PeriodChange(is_relative), rank,
                   names_winner=rank is not None)  # fmt: skip


def _changed(parts: Phrases, key: GroupKey) -> Measure:
    """Return the measure that changes; a value of which there is one per period needs no name."""
    if parts.has(Fn):
        return measures(parts)[0]
    operand = parts.take(Operand, parts.may_be_numbers)
    if operand is None:
        if parts.has(Noun, is_of_rows):
            return Measure("count")
        raise UnfitError("change", "Say of which measure: mean, total, median.")
    value = parts.column_of(operand, kinds=NUMERIC)
    if _has_one_per_period(parts, key):
        return Measure("mean", value)
    raise UnfitError(operand.phrase, f"Say mean, total or median of {operand.phrase}.")


def _has_one_per_period(parts: Phrases, key: GroupKey) -> bool:
    """Return whether the data has one row per period and series."""
    profile = parts.words.profile(key.column)
    low, high = profile.low[:7].split("-"), profile.high[:7].split("-")
    if key.unit == "month" and len(low) == len(high) == 2 and all(p.isdigit() for p in low + high):
        months = (int(high[0]) - int(low[0])) * 12 + int(high[1]) - int(low[1]) + 1
        return profile.distinct == months
    if key.unit == "year" and low[0].isdigit() and high[0].isdigit():
        return profile.distinct == int(high[0]) - int(low[0]) + 1
    return key.unit is None and profile.distinct == parts.scope.rows


def _extreme(pick: Pick | None, steps: Sequence[AggregateStep]) -> Rank | None:
    if pick is None:
        return None
    is_down = any("down" in step.detail for step in steps)
    return replace(pick.rank, ascending=is_down != pick.ascending)


def _cumulative(parts: Phrases) -> Reading:
    parts.take_all(AggregateStep)
    keys = parts.keys()
    parts.take_all(Fn, lambda fn: fn.function == "sum")
    is_over = parts.mark("over") is not None
    times = parts.scope.time_columns
    where = parts.where()
    if parts.has(Fn, lambda fn: fn.function == "count"):
        parts.take(Fn)
        measure = Measure("count")
    else:
        operand = parts.take(Operand, parts.may_be_numbers)
        if operand is None:
            raise UnfitError("cumulative", "Name the column to add up.")
        measure = Measure("sum", parts.column_of(operand, kinds=NUMERIC))
    if not keys:
        if len(times) != 1 and not is_over:
            raise UnfitError("cumulative", "Say over which time.")
        keys = (GroupKey(times[0]),)
    return Summary(parts.source, (measure,), keys, where, Cumulative())
