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


GERMAN = "name,sector,state,marketvalue,avgwage,testscr,gust,start_year\n" + "\n".join(
    f"N{n},{sector},{state},{n + 1}5,{n % 4},{n + 40},{n or ''},{1990 + n}"
    for n, (sector, state) in enumerate([("Banking", "Utah"), ("Food", "Ohio")] * 3)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Mittlerer Börsenwert je Branche", "Mean of `marketvalue` per `sector`"),
        ("Welche Branche hat den höchsten durchschnittlichen Lohn?", "`sector` with the largest"),
        ("Durchschnittslohn der Banken", "Mean of `avgwage` where `sector` is Banking"),
        ("Höchste Testnote in Utah", "Maximum of `testscr` where `state` is Utah"),
        ("Wie viel Prozent der Windböen fehlen?", "Share of rows in percent where `gust` is miss"),
        ("Wie viele Zeilen begannen nach 1992?", "where `start_year` is more than 1992"),
        ("Wie viele wurden 1992 gegründet?", "I did not understand: gegründet."),
        ("Welche Branchen gibt es bei den Zeilen?", "Distinct values of `sector`"),
        ("Mach ein Balkendiagramm der Zeilen je Branche", "Bar chart of number of rows per"),
        ("mean testscr per sector, chart it", "Bar chart of mean of `testscr` per `sector`"),
    ],
)
def test_german_words_of_columns_and_verbs(about: About, text: str, said: str) -> None:
    assert said in about({"liste.csv": GERMAN}).say(text).text.partition("\n")[0]


def test_a_verb_beside_the_time_of_the_rows_says_nothing(talk: Conversation) -> None:
    assert "where `built` is less than 1984" in talk.say("boats built before 1984").text
    assert talk.say("how many boats were sold off before 1984").is_question


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("als CSV speichern", "result.csv"),
        ("speicher das bitte als Excel-Datei schiffe.xlsx", "schiffe.xlsx"),
        ("Speichere die Liste als rumpf.csv", "rumpf.csv"),
        ("save the list as hulls.csv", "hulls.csv"),
        ("mean speed per type, save it to a csv file", "result.csv"),
        ("mean speed per type and save that as v1.xlsx", "v1.xlsx"),
    ],
)
def test_a_named_target_that_is_missing_is_written(
    talk: Conversation, text: str, file: str
) -> None:
    talk.say("mean speed per hull")
    assert f"saved as `{file}`" in talk.say(text).text.partition("\n")[0]


def test_a_refused_question_is_not_saved(talk: Conversation) -> None:
    assert talk.say("mean price per hull, save as x.csv").is_question


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
