"""Everyday words for the columns, values and rows of a file, in English and German."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.questions.in_process import Conversation

_RANKS = (("Prof", "Male", 90), ("AsstProf", "Female", 70), ("Prof", "Female", 80))
STAFF = "rank,sex,yrs.service,salary,bodywt,survived,city,visits\n" + "\n".join(
    f"{rank},{sex},{n},{pay}{n:03},{n}.5,{n % 2},{city},{n}"
    for n, city in enumerate(["Rome", "Rome", "Oslo", "Rome", "", "Oslo"] * 2, start=1)
    for rank, sex, pay in _RANKS
)


@pytest.fixture
def talk(about: Callable[..., Conversation]) -> Conversation:
    return about({"staff.csv": STAFF})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many professors are there?", "Number of rows where `rank` is Prof"),
        ("average body weight of women", "Mean of `bodywt` where `sex` is Female"),
        ("how many have more than 20 years of service", "where `yrs.service` is more than 20"),
        ("who earns more, men or women?", "Mean of `salary` per `sex`"),
        ("are there more women than men", "Number of rows per `sex`"),
        ("men vs women", "Number of rows per `sex`"),
        ("how many people died", "Number of rows where `survived` is 0"),
        ("percentage of men that survived", "Among rows where `sex` is Male, share of rows"),
        ("women per city", "Number of rows per `city` where `sex` is Female"),
        ("how many have no city", "Number of rows where `city` is missing"),
        ("average salary of asstpprof", "Mean of `salary` where `rank` is AsstProf"),
        ("visits by city, top 1", "Top 1 `city` by sum of `visits`"),
        ("mean salary per rank, highest first", "Mean of `salary` per `rank`, largest first"),
        ("does more salary mean more visits", "Correlation of `salary` and `visits`"),
        ("Durchschnittsgehalt pro Rang", "Mean of `salary` per `rank`"),
        ("Wie viele Frauen haben überlebt?", "`sex` is Female and `survived` is 1"),
        ("Wie hoch ist das höchste Gehalt?", "Maximum of `salary`"),
        ("Welcher Rang hat im Schnitt das größte Gehalt?", "`rank` with the largest mean"),
        ("Wie viele Personen haben weniger als 5 Dienstjahre?", "`yrs.service` is less than 5"),
        ("Verteilung der Gehälter zeigen", "Histogram of `salary`"),
        ("Gehalt nach Stadt im Durchschnitt, absteigend", "`city`, largest first"),
        ("is there a difference in salary between men and women", "Mean of `salary` per `sex`"),
        ("how does the salary look by rank", "Mean of `salary` per `rank`"),
        ("do men have a higher salary than women", "Mean of `salary` per `sex`"),
        ("wie sieht das Gehalt aus?", "Histogram of `salary`"),
        ("how many rows are there in total", "Number of rows (36 rows)"),
        ("how many visits were there", "Sum of `visits`"),
        ("most common visits value", "`visits` with the largest number of rows"),
        ("which visits value has the most entries", "`visits` with the largest number of rows"),
        ("Oslo", "Rows where `city` is Oslo"),
    ],
)
def test_everyday_words_are_read(talk: Conversation, text: str, said: str) -> None:
    assert said in talk.say(text).text.partition("\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        "which customer has the most visits?", "average salary in Portland",
        "how many are left-handed", "Wie viele sind Linkshänder?", "crime rate by city",
        "how many doctors are tall", "salary is 2050", "how many men won",
        "is there a salary difference between women and not women", "do more men than women die",
        "what was the lowest salary and who got it",
    ],
)  # fmt: skip
def test_other_words_are_refused(talk: Conversation, text: str) -> None:
    assert talk.say(text).is_question


def test_guesses_are_said(talk: Conversation) -> None:
    assert "I took “professors” as Prof." in talk.say("number of professors").text
    assert "I took “Gehalt” as the column `salary`." in talk.say("mittleres Gehalt").text


LANDS = "Country,Region,Population,Status,TMAX,TMIN\n" + "\n".join(
    f"{name},{region},{n}000000,{'AD'[n % 2]},{n + 20},{n}"
    for n, (name, region) in enumerate(
        [
            ("Germany", "WESTERN EUROPE"), ("Chad", "SUB-SAHARAN AFRICA"),
            ("Libya", "NORTHERN AFRICA"), ("Japan", "ASIA"), ("Egypt", "NORTHERN AFRICA"),
        ],
        start=1,
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many people live in Germany?", "Sum of `Population` where `Country` is Germany"),
        ("wie viele Menschen leben in Deutschland", "Sum of `Population` where `Country` is Ger"),
        ("mean Population of countries in africa", "where `Region` contains africa"),
        ("how many are still alive?", "where `Status` is"),
        ("list everything with gyp in the name", "Rows where `Country` contains gyp"),
        ("which country is the hottest", "maximum of `TMAX`"),
        ("coldest country", "`TMIN`"),
    ],
)
def test_words_of_countries_are_read(
    about: Callable[..., Conversation], text: str, said: str
) -> None:
    answer = about({"lands.csv": LANDS}).say(text)
    assert said in answer.text
    assert not answer.is_question


def test_a_sort_in_plain_words_and_the_rows_behind_a_number(talk: Conversation) -> None:
    talk.say("mean salary per rank")
    assert "`rank`, largest first" in talk.say("sort it from rich to poor").text
    talk.say("how many different rank of women")
    assert "Rows where `sex` is Female" in talk.say("which ones").text


def test_a_column_is_added_to_an_answer_and_a_picture_becomes_a_table(talk: Conversation) -> None:
    talk.say("mean salary per rank")
    assert "Mean of `salary` and `visits` per `rank`" in talk.say("add visits").text
    assert "Bar chart" in talk.say("as a bar chart").text
    assert "Bar chart" not in talk.say("as a table").text
    assert talk.say("add women").is_question
