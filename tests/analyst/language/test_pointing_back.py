"""Requests that point back: to the rows of the last answer, and to none that was refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading_worlds import FLIGHTS, column, number, outcome_of, replies, said, table, world

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings import NeedsLook, NotUnderstood, Understood
from taskweaver.tables.files.profile import ColumnProfile, FileInfo, PartInfo, World

DAYS = table("days.csv", column("day", "text", "Sat", "Sun"), number("tip"), rows=90)


@pytest.mark.parametrize(
    "text", ["and the averge dep_delay of those?", "what is their average dep_delay?"]
)
def test_a_pointing_word_keeps_the_filter(text: str) -> None:
    assert said(world(FLIGHTS), "how many flights with distance over 500", text) == (
        "mean of `dep_delay` where `distance` is more than 500"
    )


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
    assert said(world(FLIGHTS), *texts) == (
        "bar chart of mean of `dep_delay` per `carrier`, largest first"
    )


def test_words_that_are_verbs_and_questions_without_an_event_are_no_answer() -> None:
    assert isinstance(outcome_of("how many rows sat at that table", DAYS), NotUnderstood)
    assert isinstance(outcome_of("mean tip on sat", DAYS), Understood)
    assert isinstance(outcome_of("how often is it measured", DAYS), NotUnderstood)
    text = "what is the highest dep_delay and where does it live"
    assert isinstance(outcome_of(text, FLIGHTS), NotUnderstood)


@pytest.mark.parametrize(
    "text",
    [
        "What does the distance stand for", "and what does distance mean to you?",
        "was bedeutet distance?",
    ],
)  # fmt: skip
def test_the_meaning_of_a_word_is_no_mean(text: str) -> None:
    refused = outcome_of(text, FLIGHTS)
    assert isinstance(refused, NotUnderstood)
    assert refused.reason == "The files do not tell what `distance` means."


def test_a_share_where_each_group_has_one_row_asks_of_what() -> None:
    years = column("year", "integer", *map(str, range(2001, 2018)), low="2001", high="2017")
    kinds = column("source", "text", "Coal", "Wind", "Sun")
    power = table("power.csv", kinds, years, number("generation"), rows=51)
    refused = outcome_of("share of Wind in 2017", power)
    assert isinstance(refused, NotUnderstood)
    assert "`generation`" in refused.reason
    for text in ("share of generation of Wind in 2017", "share of rows where source is Wind"):
        assert isinstance(outcome_of(text, power), Understood)


def _many(*files: str) -> World:
    """Return a world of many files that were not looked at, beside those that were."""
    others = tuple(FileInfo(f"a{n}.csv", (PartInfo("", ("station",), 9),)) for n in range(20))
    known = world(FLIGHTS)
    return replace(known, files=(*others, *map(FileInfo, files), *known.files))


def test_among_many_files_the_one_pointed_to_refuses_with_the_word() -> None:
    first, second, third = replies(
        _many(), "blorb of flights.csv", "how many blue rows", "number of rows per carrier"
    )
    assert isinstance(first, NotUnderstood)
    assert isinstance(second, NotUnderstood)
    assert second.words == ("blue",)
    assert second.files == ("flights.csv",)
    assert isinstance(third, Understood)


def test_a_word_of_a_file_name_points_to_it() -> None:
    _, outcome = Dialogue().say("how many died in the riots", _many("la-riots.csv"))
    assert outcome == NeedsLook(("la-riots.csv",), "how many died in the riots")


def test_the_same_question_is_not_offered_twice() -> None:
    found = replies(world(FLIGHTS), "blorb", "blorb blorb")
    offers = [one.nearest for one in found if isinstance(one, NotUnderstood)]
    assert offers[0] is not None
    assert offers[1] is None


def test_an_offer_needs_no_look() -> None:
    shops = table("shops.csv", column("shop", "text"), number("amount"))
    dialogue, _ = Dialogue().say("describe shops.csv", world(shops))
    assert isinstance(dialogue.say("1", world(shops))[1], Understood)


def test_a_yes_to_nothing_is_no_filter_and_signs_are_no_yes() -> None:
    smokers = table("tips.csv", column("smoker", "text", "Yes", "No"), number("tip"))
    found = replies(world(smokers), "mean tip", "yes", "???")
    assert found[1] == NotUnderstood((), "There is no offer to take.")
    assert getattr(found[2], "words", None) == ("???",)


def test_a_refused_request_looks_at_no_file_beside_its_subject() -> None:
    listed = FileInfo("days.csv", (PartInfo("", ("day", "tip"), 90),))
    here = replace(world(FLIGHTS), files=(*world(FLIGHTS).files, listed))
    dialogue, _ = Dialogue().say("mean distance in flights.csv", here)
    text = "how much did it blorb in 2013"
    _, outcome = dialogue.say(text, here)
    if isinstance(outcome, NeedsLook):
        assert outcome.files == ("flights.csv",)
        found = replace(FLIGHTS, searched=frozenset([text]))
        _, outcome = dialogue.say(text, replace(here, tables={FLIGHTS.id: found}))
    assert isinstance(outcome, NotUnderstood)
    assert outcome.files == ("flights.csv",), "the refusal names the file that it is about"


def test_a_request_that_one_file_refuses_for_a_reason_is_not_read_from_a_join() -> None:
    years = ColumnProfile("year", "integer", 52, 0, "1565", "1820")
    wheat = table("wheat.json", years, number("wages"), rows=52)
    later = ColumnProfile("year", "integer", 12, 0, "1952", "2007")
    nations = table("nations.csv", later, column("country", "text"), number("pop"), rows=1704)
    outcome = outcome_of("average wages per year", wheat, nations)
    assert isinstance(outcome, NotUnderstood)
    assert outcome.reason == "Each `year` is in one row."
