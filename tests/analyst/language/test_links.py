"""Verbs before a condition, descriptions in parentheses, and nouns for rows."""

from __future__ import annotations

import pytest
from reading_worlds import FLIGHTS, column, number, outcome_of, reading_of, source, table

from taskweaver.analyst.readings.condition import Column, Comparison, Condition, During, OneOf
from taskweaver.analyst.readings.reading import GroupKey, Measure, Summary, Understood

STAYS = table(
    "stays.csv",
    column("ward", "text", "Surgery", "Oncology"),
    column("rank", "text", "Prof", "AsstProf"),
    column("admitted", "time", low="2020-01-01", high="2022-12-31"),
    number("cost"),
)
COUNT = (Measure("count"),)


def is_(name: str, value: object, operator: str = "==") -> Comparison:
    return Comparison(Column(name), operator, value)  # type: ignore[arg-type]


FLOWN: dict[str, Condition] = {
    "how many flights took off from JFK?": is_("origin", "JFK"),
    "how many flights operated by Delta?": is_("carrier", "Delta"),
    "how many flights not operated by Delta?": is_("carrier", "Delta", "!="),
    "number of flights leaving from LGA": is_("origin", "LGA"),
    "how many flights arriving in Boston?": is_("destination", "Boston"),
    "how many flights to either Boston or Japan?": OneOf("destination", ("Boston", "Japan")),
    "how many flights recorded in 2023?": During("date", "2023-01-01", "2024-01-01"),
    "how many flights from Kennedy (JFK)?": is_("origin", "JFK"),
}
STAYED: dict[str, Condition] = {
    "mean cost of patients treated in Surgery": is_("ward", "Surgery"),
    "mean cost of full professors (rank Prof)": is_("rank", "Prof"),
    "mean cost of assistant professors (AsstProf)": is_("rank", "AsstProf"),
    "mean cost of patients admitted in 2021": During("admitted", "2021-01-01", "2022-01-01"),
}


@pytest.mark.parametrize("text", FLOWN)
def test_verbs_before_a_condition(text: str) -> None:
    assert reading_of(text, FLIGHTS) == Summary(source(FLIGHTS), COUNT, where=FLOWN[text])


@pytest.mark.parametrize("text", STAYED)
def test_descriptions_of_a_condition(text: str) -> None:
    assert reading_of(text, STAYS) == Summary(
        source(STAYS), (Measure("mean", Column("cost")),), where=STAYED[text]
    )


def test_descriptions_are_named_as_unused() -> None:
    outcome = outcome_of("mean cost of full professors (rank Prof)", STAYS)
    assert isinstance(outcome, Understood)
    assert outcome.unused == ("full", "professors")


def test_nouns_for_rows_beside_a_group() -> None:
    assert reading_of("number of admissions by ward", STAYS) == Summary(
        source(STAYS), COUNT, (GroupKey("ward"),)
    )


def test_nouns_for_other_rows_than_those_of_the_file() -> None:
    assert not isinstance(outcome_of("number of earthquakes by origin", FLIGHTS), Understood)


@pytest.mark.parametrize(
    "text",
    [
        "how many flights arriving at JFK?",
        "how many flights departing from Boston?",
        "how many flights diverted to Boston?",
        "how many flights rejected in 2023?",
        "mean dep_delay of unlucky brave carriers (Delta)",
        "mean dep_delay of brave carriers (Delta and 2023)",
    ],
)
def test_verbs_that_may_restrict_the_rows(text: str) -> None:
    assert not isinstance(outcome_of(text, FLIGHTS), Understood)


@pytest.mark.parametrize(
    "text",
    ["how many patients joined in 2021?", "how many patients died in 2021?",
     "mean cost of retired brave full professors (rank Prof)"],
)  # fmt: skip
def test_events_that_are_not_the_time_of_the_rows(text: str) -> None:
    assert not isinstance(outcome_of(text, STAYS), Understood)
