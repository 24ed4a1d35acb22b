"""Times in tables with columns of calendar numbers."""

from __future__ import annotations

import pytest
from reading_worlds import column, number, outcome_of, reading_of, source, table

from taskweaver.analyst.readings.condition import And, Column, Comparison, Condition, OneOf
from taskweaver.analyst.readings.reading import Measure, Summary, Understood

LOG = table(
    "log.csv",
    column("year", "integer", low="2012", high="2014"),
    column("month", "integer", low="1", high="12"),
    column("day", "integer", low="1", high="31"),
    column("hour", "integer", low="0", high="23"),
    number("load"),
)
ECONOMY = table(
    "economy.csv",
    column("year", "integer", low="1990", high="2009"),
    column("quarter", "integer", low="1", high="4"),
    number("load"),
)
ROUNDS = table("rounds.csv", column("month", "integer", low="0", high="40"), number("load"))


def is_(name: str, value: object, operator: str = "==") -> Comparison:
    return Comparison(Column(name), operator, value)  # type: ignore[arg-type]


LOGGED: dict[str, Condition] = {
    "in December": is_("month", 12),
    "in June and July": OneOf("month", (6, 7)),
    "in June 2013": And((is_("year", 2013), is_("month", 6))),
    "on the 4th of July": And((is_("month", 7), is_("day", 4))),
    "on July 4": And((is_("month", 7), is_("day", 4))),
    "on 4 July 2013": And((is_("year", 2013), is_("month", 7), is_("day", 4))),
    "in the second quarter": OneOf("month", (4, 5, 6)),
    "not in December": is_("month", 12, "!="),
    "at 3 pm": is_("hour", 15),
    "at 12 in the afternoon": is_("hour", 12),
}
QUARTERS: dict[str, Condition] = {
    "in Q3 2005": And((is_("year", 2005), is_("quarter", 3))),
    "in the first quarter": is_("quarter", 1),
    "in the first quarter over all years": is_("quarter", 1),
}


@pytest.mark.parametrize("text", LOGGED)
def test_months_days_and_hours(text: str) -> None:
    assert reading_of(f"mean load {text}", LOG) == Summary(
        source(LOG), (Measure("mean", Column("load")),), where=LOGGED[text]
    )


@pytest.mark.parametrize("text", QUARTERS)
def test_quarters(text: str) -> None:
    assert reading_of(f"mean load {text}", ECONOMY) == Summary(
        source(ECONOMY), (Measure("mean", Column("load")),), where=QUARTERS[text]
    )


@pytest.mark.parametrize("text", ["mean load in June", "mean load on 4 July", "mean load at 3 pm"])
@pytest.mark.parametrize("table_", [ECONOMY, ROUNDS])
def test_times_that_no_column_holds(text: str, table_: object) -> None:
    assert not isinstance(outcome_of(text, table_), Understood)  # type: ignore[arg-type]
