"""Conversations: small talk, follow-ups, offers made of refused requests, answers to questions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading_worlds import CLIENTS, FLIGHTS, NATIONS, column, number, replies, said, table, world

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings import FileListing, NeedsLook, NotUnderstood, Unclear, Understood
from taskweaver.tables.files.profile import FileInfo, PartInfo, World

SMOKERS = table("tips.csv", column("smoker", "text", "Yes", "No"), number("tip"))


REFUSED = "mean dep_delay of Lufthansa in 2023"
DELTA, TOTAL = "mean dep_delay of Delta", "total distance per carrier"
CONVERSATIONS = {
    # of a refused request: another word for the unknown one, else an offer, never a guess
    (
        REFUSED,
        "and of Delta?",
    ): "mean of `dep_delay` where `carrier` is Delta and `date` is in 2023",
    (REFUSED, "Delta"): "mean of `dep_delay` where `carrier` is Delta and `date` is in 2023",
    (REFUSED, "and in 2024?"): "? mean of `dep_delay` where `date` is in 2024",
    (REFUSED, "and the median?"): "? median of `dep_delay` where `date` is in 2023",
    (REFUSED, "per origin"): "? mean of `dep_delay` per `origin` where `date` is in 2023",
    (REFUSED, "and the median?", "yes"): "median of `dep_delay` where `date` is in 2023",
    (REFUSED, "and the wingspan?", "and the median?"): (
        "? median of `dep_delay` where `date` is in 2023"
    ),
    (REFUSED, "mean distance per carrier"): "mean of `distance` per `carrier`",
    ("total distance", REFUSED, "from JFK"): (
        "? mean of `dep_delay` where `date` is in 2023 and `origin` is JFK"
    ),
    (REFUSED, "count"): "? number of rows where `date` is in 2023",
    # a refused change leaves the answer before
    ("mean dep_delay per carrier", "and the blue origin?", "by origin instead"): (
        "mean of `dep_delay` per `origin`"
    ),
    ("mean dep_delay per carrier", "sort it from soft to hard", "median instead"): (
        "median of `dep_delay` per `carrier`"
    ),
    # a number alone is of the rows before
    ("rows where distance > 9", "how many"): "number of rows where `distance` is more than 9",
    ("mean dep_delay per carrier where distance > 9", "How many?"): (
        "number of rows per `carrier` where `distance` is more than 9"
    ),
    # a new measure is no change of the one before
    ("mean distance per origin", "total Delta"): "? What is the mean discount per carrier?",
    ("mean distance per origin", "the heaviest"): "? What is the mean discount per carrier?",
    # offers: what was understood, and its taking
    ("which carrier is the nicest for Boston",): (
        "? distinct values of `carrier` where `destination` is Boston"
    ),
    ("which carrier has the best mean distance, and how many flights is that based on",): (
        "? `carrier` with the largest mean of `distance`"
    ),
    ("how many windows has Delta",): "? What is the mean discount per carrier?",
    ("how many flights has Delta of the moon", "the first"): (
        "number of rows where `carrier` is Delta"
    ),
    ("what is in it", "the highest one"): "`destination` with the largest mean of `dep_delay`",
    # about the last answer
    ("mean distance", "again"): "mean of `distance`",
    ("mean distance", "thanks", "and the median"): "median of `distance`",
    ("mean distance", "never mind", "noch mal"): "mean of `distance`",
    ("mean distance", "show more"): "?",
    ("first 10 rows", "more rows"): "first 20 rows",
    ("highest distance from JFK", "when was it?"): (
        "row with the largest `distance` where `origin` is JFK"
    ),
    ("how many flights of Delta", "which ones"): "rows where `carrier` is Delta",
    ("again",): "?",
    ("yes",): "?",
    # a condition is replaced, added and kept
    (DELTA, "and of United?"): "mean of `dep_delay` where `carrier` is United",
    (DELTA, "and of United?", "only from JFK"): (
        "mean of `dep_delay` where `carrier` is United and `origin` is JFK"
    ),
    (DELTA, "and of United?", "only from JFK", "per destination"): (
        "mean of `dep_delay` per `destination` where `carrier` is United and `origin` is JFK"
    ),
    ("how many flights are from JFK", "how many of them are of Delta"): (
        "number of rows where `origin` is JFK and `carrier` is Delta"
    ),
    # order, share and picture are added
    (TOTAL, "sort that descending"): "sum of `distance` per `carrier`, largest first",
    (TOTAL, "sort that descending", "plot that as a bar chart"): (
        "bar chart of sum of `distance` per `carrier`, largest first"
    ),
    (TOTAL, "in percent"): "share of the sum of `distance` per `carrier`, in percent",
    ("which carrier has the most flights", "and the fewest?"): (
        "`carrier` with the smallest number of rows"
    ),
}


@pytest.mark.parametrize("texts", CONVERSATIONS, ids=" / ".join)
def test_the_end_of_a_conversation(texts: tuple[str, ...]) -> None:
    assert said(world(FLIGHTS), *texts) == CONVERSATIONS[texts]


TOPICS = {
    "hello": "hello | Hi there! | guten Tag | hallo",
    "thanks": "thanks | Thank you so much! | ok danke | vielen Dank | great",
    "stop": "stop | never mind | forget it | vergiss es | no thanks | bye | nein",
    "who": "who are you? | Are you a bot | wer bist du",
    "help": "help | hilfe | what can you do? | was kannst du alles",
}


@pytest.mark.parametrize("topic", TOPICS)
def test_small_talk_has_a_topic(topic: str) -> None:
    for text in TOPICS[topic].split(" | "):
        assert said(world(FLIGHTS), text) == topic, text


def test_a_value_is_no_small_talk_where_it_was_asked_for() -> None:
    assert said(world(SMOKERS), "how many rows where smoker is no") == (
        "number of rows where `smoker` is No"
    )


def _folder(count: int) -> World:
    files = tuple(
        FileInfo(f"f{n}.csv", (PartInfo("", ("station", f"wind{n}"), 9),)) for n in range(count)
    )
    known = world(FLIGHTS)
    return replace(known, files=(*files, *known.files))


@pytest.mark.parametrize("count", [33, 5000])
def test_among_many_files_few_are_named_the_likeliest_first(count: int) -> None:
    here = _folder(count)
    found = replies(here, "how is it at the station", "what is in it", "delete the planet")
    refused, listed, deleted = found
    assert isinstance(refused, NotUnderstood)
    assert refused.reason.startswith("Name the file, for example `f0.csv`, ")
    assert refused.reason.count("`") == 10
    assert isinstance(listed, Understood)
    assert isinstance(listed.reading, FileListing)
    assert isinstance(deleted, NotUnderstood)
    assert deleted.words == ("delete",)
    assert said(here, "mean dep_delay per carrier", "and the median?") == (
        "median of `dep_delay` per `carrier`"
    )


def test_a_listed_file_is_described_by_its_number() -> None:
    here = world(FLIGHTS, NATIONS, CLIENTS)
    dialogue, _ = Dialogue().say("what is in it?", here)
    _, outcome = dialogue.say("2", here)
    assert isinstance(outcome, Understood)
    assert "tables=(TableId(file='nations.csv'" in repr(outcome.reading)


def test_the_other_of_two_files_answers_the_same_request() -> None:
    here = world(FLIGHTS, NATIONS)
    assert said(here, "number of rows in flights.csv", "the other file") == "help"  # described
    assert (
        replies(here, "number of rows in flights.csv", "how many rows", "the other file")[-1]
        == replies(here, "how many rows in nations.csv")[-1]
    )


def test_the_same_question_is_not_asked_twice() -> None:
    first, second, third = replies(world(FLIGHTS), "mean delay", "mean delay", "the first one")
    assert isinstance(first, Unclear)
    assert isinstance(second, NotUnderstood)
    assert isinstance(third, Understood)


def test_a_file_is_chosen() -> None:
    found = replies(world(FLIGHTS, NATIONS), "how many rows are there", "the nations one")
    assert found[1] == replies(world(NATIONS), "how many rows are there")[0]


def test_a_follow_up_looks_at_no_other_file() -> None:
    files = (FileInfo("flights.csv"), FileInfo("nations.csv"))
    known = World(files, {FLIGHTS.id: FLIGHTS})
    dialogue, _ = Dialogue().say("mean dep_delay of Delta in flights.csv", known)
    _, outcome = dialogue.say("and of United?", known)
    assert outcome == replies(world(FLIGHTS), "mean dep_delay of United")[0]
    text = "mean pop in Germany"
    assert dialogue.say(text, known)[1] == NeedsLook(("nations.csv",), text)


def test_a_file_is_found_by_its_column_however_many_files_precede_it() -> None:
    others = [FileInfo(f"a{n}.csv", (PartInfo("", ("station", "wind"), 9),)) for n in range(14)]
    last = FileInfo("flights.csv", (PartInfo("", ("carrier", "dep_delay"), 300),))
    text = "mean dep_delay per carrier"
    _, outcome = Dialogue().say(text, World((*others, last)))
    assert outcome == NeedsLook(("flights.csv",), text)
