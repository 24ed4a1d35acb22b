"""Rates, weak nouns, best and worst, gaps, and units that a column's name states."""

from __future__ import annotations

import pytest
from reading_worlds import column, number, outcome_of, reading_of, source, table

from taskweaver.analyst.readings import (
    Column,
    Comparison,
    GroupKey,
    Measure,
    Rank,
    Reading,
    Summary,
    Understood,
)

SHIP = table(
    "ship.csv",
    column("sex", "text", "male", "female"),
    column("region", "text", "North", "South"),
    number("delay"),
    number("gas"),
    number("height_m"),
)
HERE = source(SHIP)
COUNT = (Measure("count"),)
WOMEN = Comparison(Column("sex"), "==", "female")
TALL = Comparison(Column("height_m"), ">", 235)


def worst(*, ascending: bool) -> Reading:
    rank = Rank(ascending, 1)
    measure = Measure("mean", Column("delay"))
    return Summary(HERE, (measure,), (GroupKey("region"),), rank=rank, names_winner=True)


READINGS: dict[str, Reading] = {
    "average price of gas": Summary(HERE, (Measure("mean", Column("gas")),)),
    "average gas price of women": Summary(HERE, (Measure("mean", Column("gas")),), where=WOMEN),
    "which region has the worst average delay?": worst(ascending=False),
    "which region has the best average delay?": worst(ascending=True),
    "gap between max and min of gas": Summary(HERE, (Measure("range", Column("gas")),)),
    "how many rows are taller than 235 m?": Summary(HERE, COUNT, where=TALL),
}


@pytest.mark.parametrize("text", READINGS)
def test_quantities(text: str) -> None:
    assert reading_of(text, SHIP) == READINGS[text]


@pytest.mark.parametrize(
    "text",
    [
        "growth rate of women",
        "which region has the best average gas?",
        "how many rows are taller than 235 miles?",
        "average price of women",
        "birth rate by sex",
    ],
)
def test_quantities_that_no_column_holds(text: str) -> None:
    assert not isinstance(outcome_of(text, SHIP), Understood)
