"""A refusal names the nearest request that has a reading."""

from __future__ import annotations

import pytest
from reading_worlds import FLIGHTS, outcome_of

from taskweaver.analyst.readings.reading import NotUnderstood

NEAREST = {
    "mean dep_delay for Lufthansa": "mean of `dep_delay`",
    "wobbly mean dep_delay per carrier": "mean of `dep_delay` per `carrier`",
    "mean dep_delay where origin resembles JFK": "mean of `dep_delay` where `origin` is JFK",
    "asdf qwer": "",
    "why are flights late": "",
}


@pytest.mark.parametrize("text", NEAREST)
def test_the_nearest_request_lacks_the_words_that_were_not_understood(text: str) -> None:
    outcome = outcome_of(text, FLIGHTS)
    assert isinstance(outcome, NotUnderstood)
    assert outcome.nearest == NEAREST[text]
