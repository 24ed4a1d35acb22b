"""Requests without an answer, and the questions that are asked instead."""

from __future__ import annotations

import pytest
import reading_worlds as worlds
from reading_worlds import outcome_of, said, world

from taskweaver.analyst.readings import NotUnderstood, Unclear, Understood
from taskweaver.tables.files.profile import TableProfile

REFUSED = {
    "mean dep_delay for Lufthansa": "Lufthansa",
    "mean dep_delay of lufthansa": "lufthansa",
    "mean dep_delay on christmas": "christmas",
    "mean dep_delay unless cancelled": "unless",
    "mean dep_delay in summer and winter": "summer and winter",
    "mean wingspan": "wingspan",
    "mean of carrier": "carrier",
    "why are flights late": "why",
    "predict dep_delay": "predict",
    "is the difference significant": "significant",
    "send me the mean dep_delay by email": "send",
    "mean dep_delay without": "without",
    "mean dep_delay more than": "more",
    "mean dep_delay before": "before",
    "how many miles did Delta fly": "miles",
    "how many green flights": "green",
    "top 2 destinations per carrier": "top",
    "plot distance": "plot",
    "histogram of distance by carrier": "carrier",
    "mean dep_delay below average": "below average",
    "which carrier does not fly to Boston": "does not fly to Boston",
    "mean dep_delay of the first 100 flights": "first 100 flights",
}


@pytest.mark.parametrize("text", REFUSED)
def test_words_that_could_change_the_answer_are_quoted(text: str) -> None:
    outcome = outcome_of(text, worlds.FLIGHTS)
    assert isinstance(outcome, NotUnderstood)
    assert REFUSED[text] in outcome.words


@pytest.mark.parametrize("text", ["", "???", "the of and", "asdf qwer", "mean mean", "42"])
def test_nonsense_is_refused(text: str) -> None:
    assert isinstance(outcome_of(text, worlds.FLIGHTS), NotUnderstood)


def test_a_request_of_ten_thousand_words_is_refused_unread() -> None:
    outcome = outcome_of("mean dep_delay " * 5000, worlds.FLIGHTS)
    assert isinstance(outcome, NotUnderstood)
    assert "200 words" in outcome.reason


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("average delay", ("dep_delay", "arr_delay")),
        ("which carrier has the highest distance", ("total", "mean", "single value")),
        ("distance by carrier", ("total", "mean")),
    ],
)
def test_several_readings_make_a_question(text: str, options: tuple[str, ...]) -> None:
    outcome = outcome_of(text, worlds.FLIGHTS)
    assert isinstance(outcome, Unclear)
    assert outcome.options == options


def test_a_value_is_never_taken_as_filler() -> None:
    outcome = outcome_of("mean quantity of paid purchases", worlds.PURCHASES)
    assert "paid" in repr(outcome)


def test_a_plural_before_a_condition_may_be_the_ones_who_acted() -> None:
    outcome = outcome_of("mean unit_price by clients from Boston", worlds.PURCHASES, worlds.CLIENTS)
    assert isinstance(outcome, NotUnderstood)
    assert isinstance(
        outcome_of("mean unit_price per city", worlds.PURCHASES, worlds.CLIENTS), Understood
    )


NEAREST = {
    "mean dep_delay for Lufthansa": "mean of `dep_delay`",
    "wobbly mean dep_delay per carrier": "mean of `dep_delay` per `carrier`",
    "mean dep_delay where origin resembles JFK": "mean of `dep_delay` where `origin` is JFK",
    "asdf qwer": "What is the mean discount per carrier?",
}


@pytest.mark.parametrize("text", NEAREST)
def test_the_nearest_request_lacks_the_words_that_were_not_understood(text: str) -> None:
    outcome = outcome_of(text, worlds.FLIGHTS)
    assert isinstance(outcome, NotUnderstood)
    assert (outcome.nearest.text if outcome.nearest else "") == NEAREST[text]


ANOTHER: list[tuple[TableProfile, str]] = [
    (worlds.VOYAGES, """
        how many would recommend | mean of the total fare per port | mean age of not only females
        is the mean age over 30 | do all females have a fare | mean fare of the 10 oldest passengers
        how many distinct rows have age above 30 | number of distinct sex and port
        which port has only females | mean same fare per port | number of rows per name
        mean fare of female passengers with a female port
    """),
    (worlds.DEPARTURES, """
        how many flights were on time | how many flights not from JFK to BOS
        longest flight per carrier | how many months had dep_delay since 2000
    """),
    (worlds.DEATHS, """
        how many deaths were there per race | pie chart of deaths by race
        what was the most common type of death | how many counties in OHIO | deaths in KNOX
        how many people are from KNOX
    """),
    (worlds.STORMS, """
        strongest hurricane | oldest storm | number of storms by year from 1990
    """),
    (worlds.MEAT, """
        in which month was beef at its minimum | when was beef at its maximum
        line chart of yearly beef since 1990 | mean of parts
    """),
    (worlds.SHIP, """
        growth rate of women | which region has the best average gas?
        how many rows are taller than 235 miles? | birth rate by sex
    """),
    (worlds.NATIONS, """
        mean lifeExp from 1995 | mean lifeExp -> which year was that
        mean lifeExp in Germany -> top 5 years by gdpPercap | Germany vs France
    """),
    (worlds.BILLS, """
        average price of women | how many people on Sat | which day has the highest tip
        total tip -> how many of those on Sat | how many women -> what share is that
    """),
    (worlds.WINDS, """
        mean wind in may -> windiest month | how many days were above 90
    """),
    (worlds.TALLIES, """
        how many survived | share of Crew
    """),
    (worlds.FILMS, """
        which director is most common -> what is his mean Gross
        which title is most common -> how much Gross does it have
        which director is the nicest -> what is his mean Gross
    """),
    (worlds.PRICES, """
        how many stocks are there
    """),
    (worlds.INHABITANTS, """
        how many people live in Germany
    """),
]  # fmt: skip
"""Requests that were answered as another one, or have several meanings."""


@pytest.mark.parametrize(
    ("here", "texts"),
    [
        (here, text)
        for here, rows in ANOTHER
        for text in rows.strip().replace("\n", " | ").split(" | ")
    ],
)
def test_another_question_is_not_answered(here: TableProfile, texts: str) -> None:
    assert said(world(here), *texts.strip().split(" -> ")).startswith("?")
