"""Nouns for the rows of a file: by its name, its identifying column, or its columns together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.questions.in_process import Conversation

About = Callable[..., Conversation]
BIRDS = "name,genus,weight,habitat\n" + "\n".join(
    f"{name},{genus},{weight},{habitat}"
    for name, genus, weight, habitat in [
        ("Barn owl", "Tyto", 510, "farm"), ("Snowy owl", "Bubo", 2000, "tundra"),
        ("Eagle owl", "Bubo", 2700, "forest"), ("Little owl", "Athene", 180, "farm"),
    ]
)  # fmt: skip
FIRMS = "name,kind,country,assets,ceo\n" + "\n".join(
    f"Firm {n},{kind},{country},{n}0,Boss {n}"
    for n, (kind, country) in enumerate(
        [("Trading companies", "Norway"), ("Banking", "Norway"), ("Banking", "Chile")], start=1
    )
)
GAMES = "player,home_team,away_team,goals\n" + "\n".join(
    f"P{n % 3},A{n % 2},B{n % 2},{n % 4}" for n in range(12)
)
VISITS = "visit,owner,fee\n1,Ann,20\n2,Ben,30\n3,Ann,10\n"


@pytest.mark.parametrize(
    ("file", "table", "text", "said"),
    [
        ("owls.csv", BIRDS, "how many owls live in the forest?", "Number of rows where `habitat`"),
        ("owls.csv", BIRDS, "what is the heaviest bird?", "`name` and `weight` of row with"),
        ("fauna.csv", BIRDS, "which animal is the lightest?", "`name` and `weight` of row with"),
        ("fauna.csv", BIRDS, "Wie viele Tiere sind von Bubo?", "where `genus` is Bubo"),
        ("t1.csv", FIRMS, "how many companies are from Norway?", "where `country` is Norway"),
        ("t1.csv", FIRMS, "Wie viele Firmen kommen aus Chile?", "where `country` is Chile"),
        ("t1.csv", FIRMS, "Unternehmen pro Land", "Number of rows per `country`"),
        ("cup.csv", GAMES, "how many matches had 3 goals", "where `goals` is 3"),
        ("ministers.csv", "minister,state\nA,X\nB,Y\nC,X\n", "ministers per state", "per `state`"),
    ],
)
def test_a_noun_with_evidence_means_the_rows(
    about: About, file: str, table: str, text: str, said: str
) -> None:
    assert said in about({file: table}).say(text).text.partition("\n")[0]


@pytest.mark.parametrize(
    ("file", "table", "text"),
    [
        ("flights.csv", "flight,tailnum,delay\n1,N1,5\n2,N1,7\n", "how many planes are there?"),
        ("flights.csv", "flight,tailnum,delay\n1,N1,5\n2,N1,7\n", "how many accidents?"),
        ("owls.csv", BIRDS, "how many restaurants are there?"),
        ("visits.csv", VISITS, "Wie viele Hunde gibt es?"),
    ],
)
def test_a_noun_without_evidence_is_refused(about: About, file: str, table: str, text: str) -> None:
    assert about({file: table}).say(text).is_question


def test_a_thing_with_several_rows_is_not_the_rows(about: About) -> None:
    said = about({"cup.csv": GAMES}).say("how many players are there?").text
    assert said.startswith("Number of distinct `player`")


def test_a_noun_of_rows_decides_between_files(about: About) -> None:
    talk = about({"t1.csv": FIRMS, "fauna.csv": BIRDS, "visits.csv": VISITS})
    assert "where `country` is Norway" in talk.say("Wie viele Firmen sind aus Norway?").text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Und jetzt die Vögel: welcher ist der schwerste?", "`name` and `weight` of row with"),
        ("switch to the companies: total assets?", "Sum of `assets`"),
        ("Wechsle zu den Besuchen: Summe fee", "Sum of `fee`"),
    ],
)
def test_another_file_is_named_by_its_rows(about: About, text: str, said: str) -> None:
    talk = about({"t1.csv": FIRMS, "owls.csv": BIRDS, "besuche.csv": VISITS})
    assert talk.say("how many companies are from Norway?").text.startswith("Number of rows")
    assert talk.say(text).text.startswith(said)


def test_groups_are_no_condition(about: About) -> None:
    rows = "n,state\n" + "".join(f"{n},{'Open' if n % 2 else 'Not open'}\n" for n in range(8))
    talk = about({"doors.csv": rows})
    assert talk.say("mean n where state is open and state is not open").is_question


def test_a_bare_group_in_german_changes_the_answer_before(about: About) -> None:
    talk = about({"owls.csv": BIRDS})
    talk.say("mean weight")
    assert talk.say("nach Gattung").text.startswith("Mean of `weight` per `genus`")
    assert talk.say("je habitat").text.startswith("Mean of `weight` per `habitat`")


def test_a_bare_group_after_a_refusal_counts_nothing(about: About) -> None:
    talk = about({"owls.csv": BIRDS})
    assert talk.say("Wie viel fressen die Eulen im Schnitt?").is_question
    assert talk.say("nach Gattung").is_question


def test_an_own_column_is_evidence_beside_the_name_of_the_file(about: About) -> None:
    rows = "place,inspection_score,weekend\n" + "".join(
        f"P{n % 3},{n},{n % 2 == 0}\n" for n in range(12)
    )
    power = "year,watts\n2001-01-06,3\n2002-01-01,4\n2003-01-05,5\n"
    talk = about({"restaurant_data.csv": rows, "power.csv": power})
    said = talk.say("how many inspections were there at the weekend?").text
    assert said.startswith("Number of rows where `weekend`") or "not understand" in said
    assert "watts" not in said
    assert "Saturday" not in said


def test_a_deed_to_things_of_several_rows_is_not_counted_by_rows(about: About) -> None:
    rows = "name,year\n" + "".join(f"P{n % 3},{2000 + n % 4}\n" for n in range(24))
    assert about({"cafes.csv": rows}).say("how many cafes were inspected in 2001?").is_question


def test_an_ellipsis_in_german_keeps_the_rows_before(about: About) -> None:
    talk = about({"owls.csv": BIRDS})
    assert talk.say("Wie viele Vögel sind Bubo?").text.startswith("Number of rows where `genus`")
    said = talk.say("Wie schwer sind die im Mittel?")
    assert said.is_question or "`genus` is Bubo" in said.text
    talk.say("Wie viele Vögel sind Bubo?")
    said = talk.say("Welche hat das größte Gewicht?")
    assert said.is_question or "`genus` is Bubo" in said.text
    talk.say("Wie viele Vögel sind Bubo?")
    assert "`habitat` is forest" in talk.say("Wie viele davon leben in forest?").text
