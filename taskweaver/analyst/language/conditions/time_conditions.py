"""Restrictions of time as conditions on a column of times or years."""

from __future__ import annotations

from taskweaver.analyst.language.lookup.times import Period, Recent, Recurring, TimeBound, When
from taskweaver.analyst.readings.condition import (
    And,
    Column,
    Comparison,
    Condition,
    During,
    Latest,
    OnCalendar,
)


def as_condition(when: When, column: str, *, is_time: bool) -> Condition | None:
    """Return a restriction of time as a condition on a column of times, or of years as integers.

    None if years cannot express it.
    """
    if isinstance(when, Recent):
        return Latest(column, when.count, when.unit) if is_time or when.unit == "year" else None
    if isinstance(when, Recurring):
        return OnCalendar(column, when.part, when.values) if is_time else None
    if is_time:
        return _during(when, column)
    return _in_years(when, column)


def _during(when: Period | TimeBound, column: str) -> Condition:
    if isinstance(when, Period):
        return During(column, when.start, when.end)
    bounds = {
        "since": (when.period.start, ""),
        "after": (when.period.end, ""),
        "before": ("", when.period.start),
        "until": ("", when.period.end),
    }
    return During(column, *bounds[when.relation])


def _in_years(when: Period | TimeBound, column: str) -> Condition | None:
    period = when if isinstance(when, Period) else when.period
    if not period.first_year or not period.last_year:
        return None
    name = Column(column)
    if isinstance(when, TimeBound):
        if when.relation in ("since", "before"):
            return Comparison(name, ">=" if when.relation == "since" else "<", period.first_year)
        return Comparison(name, ">" if when.relation == "after" else "<=", period.last_year)
    if period.first_year == period.last_year:
        return Comparison(name, "==", period.first_year)
    return And(
        (Comparison(name, ">=", period.first_year), Comparison(name, "<=", period.last_year))
    )
