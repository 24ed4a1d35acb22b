"""Requests that point back: to the rows of the last answer, and to none that was refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading_worlds import FLIGHTS, column, number, outcome_of, replies, source, table, world

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings import (
    Column,
    Comparison,
    GroupKey,
    Measure,
    NeedsLook,
    NotUnderstood,
    Rank,
    Summary,
    Understood,
)

FAR = Comparison(Column("distance"), ">", 500)
MEAN = Summary(source(FLIGHTS), (Measure("mean", Column("dep_delay")),), where=FAR)
DAYS = table("days.csv", column("day", "text", "Sat", "Sun"), number("tip"), rows=90)


@pytest.mark.parametrize(
    "text",
    [
        "and the averge dep_delay of those?",
        "and the average dep_delay of those?",
        "what is their average dep_delay?",
        "their mean dep_delay",
    ],
)
def test_a_pointing_word_keeps_the_filter(text: str) -> None:
    found = replies(world(FLIGHTS), "how many flights with distance over 500", text)
    assert isinstance(found[1], Understood)
    assert found[1].reading == MEAN


def test_a_pointing_word_that_cannot_be_read_as_one_is_refused() -> None:
    found = replies(world(FLIGHTS), "how many flights with distance over 500", "blorb of those")
    assert isinstance(found[1], NotUnderstood)


def test_a_value_per_group_after_a_number_of_rows_is_not_chosen_for_the_user() -> None:
    found = replies(world(FLIGHTS), "number of flights per origin", "and dep_delay per carrier")
    assert not isinstance(found[1], Understood) or "max" not in str(found[1].reading)


@pytest.mark.parametrize(
    "text", ["of those, how many are of Delta", "how many of them are of Delta", "and the lowest?"]
)
def test_nothing_points_back_to_a_refused_request(text: str) -> None:
    found = replies(world(FLIGHTS), "mean distance of Delta", "blorb the flights", text)
    assert isinstance(found[2], NotUnderstood)
    assert found[2].reason.startswith("The question before")


def test_a_picture_of_a_winner_shows_its_rivals() -> None:
    texts = ("which carrier has the highest mean dep_delay", "as a bar chart")
    drawn = replies(world(FLIGHTS), *texts)[1]
    mean = replace(MEAN, where=None, keys=(GroupKey("carrier"),), rank=Rank(), chart="bar")
    assert drawn == Understood(mean)


def test_words_that_are_verbs_and_questions_without_an_event_are_no_answer() -> None:
    assert isinstance(outcome_of("how many rows sat at that table", DAYS), NotUnderstood)
    assert isinstance(outcome_of("mean tip on sat", DAYS), Understood)
    assert isinstance(outcome_of("how often is it measured", DAYS), NotUnderstood)
    text = "what is the highest dep_delay and where does it live"
    assert isinstance(outcome_of(text, FLIGHTS), NotUnderstood)


def test_an_offer_is_looked_up_by_its_own_words() -> None:
    shops = table("shops.csv", column("shop", "text"), number("amount"))
    dialogue, _ = Dialogue().say("describe shops.csv", world(shops))
    _, outcome = dialogue.say("1", world(shops))
    assert outcome == NeedsLook(("shops.csv",), dialogue.offers[0].text)
    seen = replace(shops, searched=frozenset({dialogue.offers[0].text}))
    assert isinstance(dialogue.say("1", world(seen))[1], Understood)
