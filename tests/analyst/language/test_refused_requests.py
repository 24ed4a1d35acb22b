"""Requests without an answer, and the questions that are asked instead."""

from __future__ import annotations

import pytest
from reading_worlds import (
    CLIENTS,
    FLIGHTS,
    PURCHASES,
    outcome_of,
)  # fmt: skip

from taskweaver.analyst.readings import NotUnderstood, Unclear, Understood

REFUSED = {
    "mean dep_delay for Lufthansa": "Lufthansa",
    "mean dep_delay of lufthansa": "lufthansa",
    "mean dep_delay on christmas": "christmas",
    "mean dep_delay unless cancelled": "unless",
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
    outcome = outcome_of(text, FLIGHTS)
    assert isinstance(outcome, NotUnderstood)
    assert REFUSED[text] in outcome.words


@pytest.mark.parametrize("text", ["", "???", "the of and", "asdf qwer", "mean mean", "42"])
def test_nonsense_is_refused(text: str) -> None:
    assert isinstance(outcome_of(text, FLIGHTS), NotUnderstood)


def test_a_request_of_ten_thousand_words_is_refused_unread() -> None:
    outcome = outcome_of("mean dep_delay " * 5000, FLIGHTS)
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
    outcome = outcome_of(text, FLIGHTS)
    assert isinstance(outcome, Unclear)
    assert outcome.options == options


def test_a_value_is_never_taken_as_filler() -> None:
    outcome = outcome_of("mean quantity of paid purchases", PURCHASES)
    assert "paid" in repr(outcome)


def test_a_plural_before_a_condition_may_be_the_ones_who_acted() -> None:
    outcome = outcome_of("mean unit_price by clients from Boston", PURCHASES, CLIENTS)
    assert isinstance(outcome, NotUnderstood)
    assert isinstance(outcome_of("mean unit_price per city", PURCHASES, CLIENTS), Understood)


NEAREST = {
    "mean dep_delay for Lufthansa": "mean of `dep_delay`",
    "wobbly mean dep_delay per carrier": "mean of `dep_delay` per `carrier`",
    "mean dep_delay where origin resembles JFK": "mean of `dep_delay` where `origin` is JFK",
    "asdf qwer": "What is the mean discount per carrier?",
}


@pytest.mark.parametrize("text", NEAREST)
def test_the_nearest_request_lacks_the_words_that_were_not_understood(text: str) -> None:
    outcome = outcome_of(text, FLIGHTS)
    assert isinstance(outcome, NotUnderstood)
    assert (outcome.nearest.text if outcome.nearest else "") == NEAREST[text]
