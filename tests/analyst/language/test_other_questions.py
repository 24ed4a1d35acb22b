"""Requests that are not to be answered as another question: rules about nouns, scope and groups."""

from __future__ import annotations

import pytest
from reading_worlds import column, number, outcome_of, reading_of, source, table

from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    Condition,
    GroupKey,
    Measure,
    Not,
    NotUnderstood,
    Or,
    Rank,
    Reading,
    Rows,
    Share,
    Summary,
    Unclear,
)
from taskweaver.tables.files.profile import ColumnProfile, TableProfile

VOYAGES = table(
    "voyage.csv",
    column("name", "text", *(f"P{n}" for n in range(300))),
    column("sex", "text", "female", "male"),
    number("age", high="80"),
    column("passengerClass", "text", "A1", "B2", "C3"),
    column("port", "text", "Oslo", "Bergen"),
    column("survived", "text", "yes", "no"),
    column("recommend", "text", "Yes", "No", "Maybe"),
    number("fare", high="500"),
    rows=300,
)
FLIGHTS = table(
    "flights.csv",
    column("month", "integer", *map(str, range(1, 13)), low="1", high="12"),
    ColumnProfile("flight", "integer", 350, 0, "1", "4000"),
    column("carrier", "text", "UA", "DL"),
    column("origin", "text", "JFK", "LGA"),
    column("dest", "text", "BOS", "LAX"),
    number("dep_delay"),
    column("time_hour", "time", low="2013-01-01", high="2013-12-31"),
    rows=400,
)
DEATHS = table(
    "riots.csv",
    column("race", "text", "Black", "White"),
    column("type", "text", "Death", "Homicide"),
    column("county", "text", "OHIO", "KNOX"),
    column("state", "text", "OH", "IL"),
    column("species", "text", "Human", "Droid"),
    column("death_date", "time", low="1992-04-29", high="1992-05-12"),
    number("percent"),
)
STORMS = table(
    "storms.csv",
    column("name", "text", "Ana", "Bob"),
    column("year", "integer", *map(str, range(1985, 2015)), low="1985", high="2014"),
    column("status", "text", "hurricane", "tropical storm"),
    number("wind", high="150"),
    ColumnProfile("hurricane_force_diameter", "number", 9, 20, "10", "60"),
)
MEAT = table(
    "meat.csv",
    ColumnProfile("date", "time", 330, 0, "1985-01-01", "2012-12-01"),
    number("beef", high="1500"),
    number("pork", high="1500"),
    ColumnProfile("part_id", "integer", 330, 0, "1", "330"),
    rows=330,
)
COUNT = Measure("count")


def is_(name: str, value: object, operator: str = "==") -> Comparison:
    return Comparison(Column(name), operator, value)  # type: ignore[arg-type]


def summary(
    here: TableProfile, measure: Measure, *keys: str, where: Condition | None = None
) -> Summary:
    return Summary(source(here), (measure,), tuple(map(GroupKey, keys)), where)


FEMALE, SURVIVED = is_("sex", "female"), is_("survived", "yes")
COUNTED: list[tuple[TableProfile, str, Reading]] = [
    (VOYAGES, "number of passengers per port", summary(VOYAGES, COUNT, "port")),
    (
        VOYAGES,
        "how many passengers are older than 60",
        summary(VOYAGES, COUNT, where=is_("age", 60, ">")),
    ),
    (FLIGHTS, "how many flights went to BOS", summary(FLIGHTS, COUNT, where=is_("dest", "BOS"))),
    (FLIGHTS, "how many flights were there each month", summary(FLIGHTS, COUNT, "month")),
    (
        FLIGHTS,
        "which month has the most flights",
        Summary(
            source(FLIGHTS), (COUNT,), (GroupKey("month"),), rank=Rank(count=1), names_winner=True
        ),
    ),
    (STORMS, "how many hurricanes", summary(STORMS, COUNT, where=is_("status", "hurricane"))),
    (
        STORMS,
        "which year had the most hurricanes",
        Summary(
            source(STORMS),
            (COUNT,),
            (GroupKey("year"),),
            is_("status", "hurricane"),
            rank=Rank(count=1),
            names_winner=True,
        ),
    ),
    (STORMS, "how many years are there", summary(STORMS, Measure("nunique", Column("year")))),
]


@pytest.mark.parametrize(("here", "text", "reading"), COUNTED)
def test_nouns_of_counts_are_rows_or_values(
    here: TableProfile, text: str, reading: Reading
) -> None:
    assert reading_of(text, here) == reading


SCOPES: list[tuple[TableProfile, str, Condition]] = [
    (VOYAGES, "not (sex is male and survived is yes)", Not(And((is_("sex", "male"), SURVIVED)))),
    (VOYAGES, "sex is not male and survived is yes", And((is_("sex", "male", "!="), SURVIVED))),
    (
        VOYAGES,
        "neither sex is male nor survived is yes",
        Not(Or((is_("sex", "male"), SURVIVED))),
    ),
    (
        DEATHS,
        "state is not OH and not KNOX",
        And((is_("state", "OH", "!="), is_("county", "KNOX", "!="))),
    ),
]


@pytest.mark.parametrize(("here", "words", "where"), SCOPES)
def test_a_negation_covers_its_brackets(here: TableProfile, words: str, where: Condition) -> None:
    assert reading_of(f"number of rows where {words}", here) == summary(here, COUNT, where=where)


def test_a_short_form_in_brackets_says_which_value_is_meant() -> None:
    mean = Measure("mean", Column("percent"))
    assert reading_of("mean percent without Ohio (OH)", DEATHS) == summary(
        DEATHS, mean, where=is_("state", "OH", "!=")
    )


def test_the_whole_of_a_share_follows_among() -> None:
    text = "share of rows where survived is yes among rows where sex is female"
    assert reading_of(text, VOYAGES) == Summary(
        source(VOYAGES), (COUNT,), where=FEMALE, then=Share(SURVIVED)
    )


def test_an_adjective_chooses_the_row_whose_value_is_shown() -> None:
    assert reading_of("youngest female passenger's fare", VOYAGES) == Rows(
        source(VOYAGES),
        ("name", "fare", "age"),
        FEMALE,
        Column("age"),
        Rank(ascending=True, count=1),
    )


REFUSED: list[tuple[TableProfile, str]] = [
    (VOYAGES, "how many would recommend"),
    (VOYAGES, "mean of the total fare per port"),
    (VOYAGES, "mean age of not only females"),
    (VOYAGES, "is the mean age over 30"),
    (VOYAGES, "do all females have a fare"),
    (VOYAGES, "mean fare of the 10 oldest passengers"),
    (VOYAGES, "how many distinct rows have age above 30"),
    (VOYAGES, "number of distinct sex and port"),
    (VOYAGES, "which port has only females"),
    (VOYAGES, "mean same fare per port"),
    (VOYAGES, "number of rows per name"),
    (VOYAGES, "mean fare of female passengers with a female port"),
    (FLIGHTS, "how many flights were on time"),
    (FLIGHTS, "how many flights not from JFK to BOS"),
    (FLIGHTS, "longest flight per carrier"),
    (FLIGHTS, "how many months had dep_delay since 2000"),
    (DEATHS, "how many deaths were there per race"),
    (DEATHS, "pie chart of deaths by race"),
    (DEATHS, "what was the most common type of death"),
    (DEATHS, "how many counties in OHIO"),
    (DEATHS, "deaths in KNOX"),
    (DEATHS, "how many people are from KNOX"),
    (STORMS, "strongest hurricane"),
    (STORMS, "oldest storm"),
    (STORMS, "number of storms by year from 1990"),
    (MEAT, "in which month was beef at its minimum"),
    (MEAT, "when was beef at its maximum"),
    (MEAT, "line chart of yearly beef since 1990"),
    (MEAT, "mean of parts"),
]


@pytest.mark.parametrize(("here", "text"), REFUSED)
def test_another_question_is_not_answered(here: TableProfile, text: str) -> None:
    assert isinstance(outcome_of(text, here), NotUnderstood | Unclear)
