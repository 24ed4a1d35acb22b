"""Words that mean a value of another spelling: sexes, weekdays, grades."""

from __future__ import annotations

import pytest
from reading_worlds import column, number, reading_of, source, table

from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    Measure,
    Not,
    OneOf,
    Summary,
)

SHIP = table(
    "ship.csv",
    column("pclass", "text", "1st", "2nd", "3rd"),
    column("sex", "text", "male", "female"),
    number("age"),
    number("fare"),
)


def is_(name: str, value: object, operator: str = "==") -> Comparison:
    return Comparison(Column(name), operator, value)  # type: ignore[arg-type]


SHIP_CONDITIONS: dict[str, Condition] = {
    "of women": is_("sex", "female"),
    "of men": is_("sex", "male"),
    "in third class": is_("pclass", "3rd"),
    "in 1st class": is_("pclass", "1st"),
    "of second class passengers": is_("pclass", "2nd"),
    "in first or second class": OneOf("pclass", ("1st", "2nd")),
    "not in 1st or 2nd class": Not(OneOf("pclass", ("1st", "2nd"))),
    "of passengers not older than 65, women only": And(
        (Not(is_("age", 65, ">")), is_("sex", "female"))
    ),
    "of passengers who are not women, 1st class": And(
        (is_("sex", "female", "!="), is_("pclass", "1st"))
    ),
}


@pytest.mark.parametrize("text", SHIP_CONDITIONS)
def test_words_for_values_of_a_ship(text: str) -> None:
    assert reading_of(f"average fare {text}", SHIP) == Summary(
        source(SHIP), (Measure("mean", Column("fare")),), where=SHIP_CONDITIONS[text]
    )
