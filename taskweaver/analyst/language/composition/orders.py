"""Readings of orders: ``sort the sources by total net_generation``, ``rank carriers by ...``."""

from __future__ import annotations

from taskweaver.analyst.language.composition.groups import NUMERIC, measures
from taskweaver.analyst.language.composition.parts import Phrases, UnfitError
from taskweaver.analyst.language.composition.ranks import by_operand, can_group
from taskweaver.analyst.language.lookup.measures import Operand
from taskweaver.analyst.language.phrases.atoms import AggregateStep, Fn, Mark, Noun, Pick
from taskweaver.analyst.readings.condition import Column
from taskweaver.analyst.readings.reading import GroupKey, Measure, Rank, Reading, Rows, Summary


def sorted_groups(parts: Phrases) -> Reading | None:
    """Return the reading of ``sort the sources by total net_generation``; None if none sorts."""
    if not parts.has(Mark, lambda mark: mark.kind in ("sort", "asc", "desc")):
        return None
    if parts.has(Pick) or parts.has(AggregateStep):
        return None
    direction = parts.mark("asc", "desc")
    order = parts.mark("sort")
    is_ranking = order is not None and order.detail == "rank"
    ascending = direction.kind == "asc" if direction else not is_ranking
    where = parts.where()
    by = by_operand(parts)
    keys = parts.keys()
    if parts.has(Fn):
        texts = [
            (atom, operand)
            for atom, operand in parts.all(Operand)
            if not keys and any(can_group(parts, name) for name in operand.names)
        ]
        for atom, operand in texts[:1]:
            parts.use(atom)
            value = parts.column_of(operand)
            keys = (GroupKey(value.name),) if isinstance(value, Column) else keys
        found = _sorted_measures(parts, by)
        if not keys:
            raise UnfitError(("sort",), "Name the groups to sort.")
        return Summary(parts.source, found, keys, where, rank=Rank(ascending))
    chosen = by or parts.take(Operand)
    if chosen is None or keys:
        raise UnfitError(("sort",), "Name the column to sort by.")
    rows = [atom for atom, noun in parts.all(Noun) if noun.kind in ("row", "file")]
    for atom in rows:
        parts.use(atom)
    value = parts.column_of(chosen)
    return Rows(parts.source, (), where, value, Rank(ascending))


def _sorted_measures(parts: Phrases, by: Operand | None) -> tuple[Measure, ...]:
    if by is not None:
        fn = parts.take(Fn)
        value = parts.column_of(by, kinds=NUMERIC)
        return (Measure(fn.function if fn else "sum", value),)
    return measures(parts)
