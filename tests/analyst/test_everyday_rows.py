"""Everyday phrases about rows: kinds of a column, verbs beside times, results to save."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.questions.in_process import Conversation
from taskweaver.analyst.code.cell import merged_note
from taskweaver.tables.files.profile import ColumnProfile, TableId, TableProfile

About = Callable[..., Conversation]
BOATS = "boat,hull,type,built,crew,speed\n" + "\n".join(
    f"B{n},{hull},{kind},{1980 + n},{n or ''},{n * 3}"
    for n, (hull, kind) in enumerate(
        [("steel", "ferry"), ("wood", "yacht"), ("steel", "yacht"), ("wood", "ferry")] * 2
    )
)


@pytest.fixture
def talk(about: About) -> Conversation:
    return about({"boats.csv": BOATS})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("which hull types are there?", "Distinct values of `hull`"),
        ("mean speed per hull kind", "Mean of `speed` per `hull`"),
        ("which hull and type are there?", "Distinct values of `hull` and `type`"),
        ("which columns have missing values and how many?", "Missing values per column"),
        ("how many missing values are there?", "Number of missing values"),
    ],
)
def test_kinds_and_gaps_of_columns(talk: Conversation, text: str, said: str) -> None:
    assert talk.say(text).text.startswith(said)


def test_an_offer_is_no_value_where_a_name_is_asked_for(talk: Conversation) -> None:
    talk.say("which captain has the highest speed?")
    assert all("maximum" not in offer.text for offer in talk._dialogue.offers)


def test_a_bare_group_after_a_refusal_is_not_counted(talk: Conversation) -> None:
    talk.say("Vergleiche das Tempo von Quallen und Nicht-Quallen")
    assert talk.say("je hull").is_question


@pytest.mark.parametrize(
    ("code", "is_named"),
    [("t[t['shop'] == 'BAR']", False), ("t[t['shop'] == 'PIT']", True), ("t['shop']", True)],
)
def test_merged_spellings_are_named_where_they_count(code: str, is_named: bool) -> None:
    shop = ColumnProfile("shop", "text", 5, spellings={"PIT ": "PIT"})
    table = TableProfile(TableId("a.csv"), 5, (shop,))
    merged = "t['shop'] = t['shop'].replace({'PIT ': 'PIT'})\n"
    assert bool(merged_note(merged + code, {table.id: table})) is is_named
