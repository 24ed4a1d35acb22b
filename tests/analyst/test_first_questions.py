"""The first questions about a file: what is in it, taken offers, wordings, saved results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.questions.in_process import Conversation
from taskweaver.analyst.model.refusals import CONNECT
from taskweaver.analyst.model.replies import as_planner
from taskweaver.llm.types import ChatMessage

About = Callable[..., Conversation]
ROWS = "make,fuel,price,weight,sold\n" + "\n".join(
    f"{make},{fuel},{price},{price / 7:.1f},2024-{month:02}-03"
    for make, fuel, price, month in [
        ("audi", "gas", 17000, 1), ("audi", "diesel", 21000, 2), ("bmw", "gas", 26000, 3),
        ("bmw", "gas", 31000, 4), ("fiat", "gas", 9000, 5), ("fiat", "diesel", 9500, 6),
    ]
)  # fmt: skip

WHAT_IS_IN_IT = """
what is in this file? | what's in cars.csv | what is in it? | What is this file about?
tell me about this file | describe the data | give me an overview | overview | summary
summarise cars.csv | show me the file | show me the data | what data is this
what does the data look like | explain this dataset | what can I ask about this file?
what information is in the table | help me understand this data | what's the data about
can you please describe cars.csv | what does cars.csv contain? | let me look at the data
was ist in der Datei? | was steht in cars.csv? | worum geht es in der Datei?
beschreibe die Daten | zeig mir die Daten | überblick | zusammenfassung der Datei
erzähl mir etwas über die Daten | was sind das für Daten? | Gib mir einen Überblick über die Daten
"""


@pytest.fixture
def talk(about: About) -> Conversation:
    return about({"cars.csv": ROWS})


@pytest.mark.parametrize("text", WHAT_IS_IN_IT.strip().replace("\n", " | ").split(" | "))
def test_what_is_in_a_file_is_told_in_prose(talk: Conversation, text: str) -> None:
    answer = talk.say(text).text
    assert answer.startswith("`cars.csv` has 6 rows and 5 columns.")
    assert "`make` (audi, bmw, fiat)" in answer
    assert "`price` 9000 to 31000" in answer
    assert "1. What is the mean price per make?" in answer


def test_an_empty_column_is_not_one_that_is_always_the_same(about: About) -> None:
    said = about({"t.csv": "a,none,same,some\n1,,x,y\n2,,x,\n"}).say("overview").text
    assert "- Empty: `none`\n- Always the same: `same`\n" in said
    assert "- Missing: `some` 1\n" in said


@pytest.mark.parametrize(
    "text", ["what is in stock?", "describe price", "tell me about audi", "show me the makes of it"]
)
def test_a_question_for_something_else_is_not_one_for_the_file(
    talk: Conversation, text: str
) -> None:
    assert "has 6 rows and" not in talk.say(text).text


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("describe boats", "boats.csv"), ("what's in cars?", "cars.csv"),
        ("what is in cars.csv?", "cars.csv"), ("was steht in boats?", "boats.csv"),
        ("what is in boats.csv and cars.csv?", "boats.csv"),
    ],
)  # fmt: skip
def test_a_file_is_described_by_the_words_of_its_name(about: About, text: str, file: str) -> None:
    talk = about(dict.fromkeys(("boats.csv", "cars.csv", "in.csv"), ROWS))
    talk.say("mean price in in.csv")  # no other file is meant instead
    said = talk.say(text).text
    assert said.startswith(f"`{file}` has 6 rows")
    assert f"1. What is the mean price per make in {file}?" in said  # others have such columns
    assert f"read_table({file!r})" in talk.say("1").code


def test_other_words_are_tried_before_all_files(about: About) -> None:
    others = {f"other{number}.csv": "a,b\n1,2\n3,4\n" for number in range(3)}
    talk = about({"cars.csv": ROWS, **others})
    assert talk.say("which makes are there?").text.startswith("Distinct values of `make`")
    assert {id.file for id in talk._tables} == {"cars.csv"}


@pytest.mark.parametrize("taken", ["1", "yes", "OK", "the first one", "Nr. 1", "ja bitte", "do it"])
def test_an_offer_is_taken(talk: Conversation, taken: str) -> None:
    talk.say("what is in it?")
    assert "Mean of `price` per `make`" in talk.say(taken).text


def test_each_offered_question_has_an_answer(talk: Conversation) -> None:
    for place in "123":
        talk.say("overview")
        assert not talk.say(place).is_question


def test_a_number_takes_nothing_where_nothing_was_offered(talk: Conversation) -> None:
    talk.say("mean price per make")
    assert talk.say("2").is_question


def test_an_offer_is_taken_beside_an_open_question(talk: Conversation) -> None:
    assert "Does" in talk.say("which fuel has the highest price?").text
    talk.say("mean weight per make really strangely")
    assert "Mean of `weight` per `make`" in talk.say("yes").text


@pytest.mark.parametrize("text", ["das", "it", "no 4"])
def test_an_offer_is_not_taken(talk: Conversation, text: str) -> None:
    talk.say("what is in it?")
    assert talk.say(text).is_question


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("what are the makes?", "Distinct values of `make`"),
        ("list the makes", "Distinct values of `make`"),
        ("price vs weight", "Scatter plot of `price` against `weight`"),
        ("is price related to weight?", "Correlation of `price` and `weight`"),
        ("average price for each fuel type", "Mean of `price` per `fuel`"),
        ("wie viele Zeilen hat die Datei?", "Number of rows"),
        ("durchschnittlicher price pro make", "Mean of `price` per `make`"),
    ],
)
def test_a_wording_is_read_as_the_request_it_means(
    talk: Conversation, text: str, heading: str
) -> None:
    assert talk.say(text).text.startswith(heading)


@pytest.mark.parametrize("text", ["list everything", "show me all", "show all rows"])
def test_no_word_of_our_own_is_read_as_a_column(about: About, text: str) -> None:
    assert about({"cars.csv": ROWS.replace("price", "value")}).say(text).is_question


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("number of make", "Number of distinct `make`"),
        ("how many make are there?", "Number of distinct `make`"),
        ("which make has the highest price?", "Does"),
        ("make a histogram of price", "Histogram of `price`"),
        ("can you make a bar chart of mean price per fuel", "Bar chart of mean of `price`"),
    ],
)
def test_a_column_with_the_name_of_a_deed_is_no_filler(
    talk: Conversation, text: str, heading: str
) -> None:
    assert talk.say(text).text.startswith(heading)


def test_a_wording_of_unknown_words_is_refused(talk: Conversation) -> None:
    assert talk.say("horsepower vs weight").is_question


@pytest.mark.parametrize(
    ("text", "file"), [("save that as csv", "result.csv"), ("export it to mean.csv", "mean.csv")]
)
def test_a_result_is_saved(talk: Conversation, text: str, file: str) -> None:
    talk.say("mean price per make")
    assert f"saved as `{file}`" in talk.say(text).text.partition("\n")[0] or Path(file).exists()
    assert Path(file).read_text("utf-8").splitlines()[1] == "audi,19000.0"
    assert "Median" in talk.say("and the median?").text


def test_all_rows_are_saved_also_where_few_are_shown(about: About) -> None:
    lines = ["a,b", *(f"{number},{number / 3:.2f}" for number in range(50))]
    talk = about({"many.csv": "\n".join(lines)})
    for request, saved in {"rows where a is more than 9": 40, "a vs b": 50}.items():
        talk.say(request)
        assert not talk.say("save it as csv").is_question
        assert len(Path("result.csv").read_text("utf-8").splitlines()) == saved + 1


@pytest.mark.parametrize("text", ["how many rows and columns", "missing values in price"])
def test_numbers_are_saved_as_a_table(talk: Conversation, text: str) -> None:
    talk.say(text)
    talk.say("save it as csv")
    assert len(Path("result.csv").read_text("utf-8").splitlines()) == 2


def test_nothing_is_saved_before_there_is_a_result(talk: Conversation) -> None:
    assert "no result yet" in talk.say("save it as csv").text


def test_a_result_replaces_no_file(about: About) -> None:
    talk = about(dict.fromkeys(("cars.csv", "result.csv"), ROWS))
    talk.say("mean price per make in cars.csv")
    assert "There is a file Cars.csv already" in talk.say("save it as Cars.csv").text
    assert "saved as `result_2.csv`" in talk.say("save it as csv").text


def planned(*texts: str, keeps_facts: bool = True) -> dict[str, str]:
    """Return the reply to the last of some messages of the user; those before were answered."""
    messages: list[ChatMessage] = []
    for text in texts:
        content = f"From: User\nMessage: {text}"
        if messages:
            reply = as_planner(messages, ["CodeInterpreter", "User"])
            messages.append({"role": "assistant", "content": json.dumps({"response": reply})})
        else:
            content = f"Let's start the new conversation!\n\n{content}"
        messages.append({"role": "user", "content": content})
    return as_planner(messages, ["CodeInterpreter", "User"], keeps_facts=keeps_facts)


@pytest.mark.parametrize(
    "text",
    ["Remember that price is net", "please note: price is net", "Merk dir, dass price is net"],
)
def test_a_fact_is_kept(text: str) -> None:
    assert planned(text)["remember"] == "price is net"
    assert "remember" not in planned(text, keeps_facts=False)
    assert "remember" not in planned("Do you remember that price is net?")


def test_a_file_to_write_is_not_looked_for() -> None:
    assert "There is no file" in planned("mean of new.csv")["message"]
    assert "There is no file" not in planned("save it as new.csv")["message"]


def test_the_notice_on_who_answers_is_shown_once() -> None:
    assert CONNECT in planned("why is the sky blue?")["message"]
    assert CONNECT not in planned("why is the sky blue?", "why is the sea green?")["message"]


def test_a_fact_goes_with_a_question() -> None:
    reply = planned("Remember that price is net. 2 + 3")
    assert (reply["remember"], reply["send_to"]) == ("price is net", "CodeInterpreter")
    both = "Remember that price is net. Gnus pay double."
    assert planned(both)["remember"] == "price is net. Gnus pay double."


PEOPLE = (
    "name,sex,age,smoker,voted,city,salary,year\n"
    "Ann,Female,31,Yes,1,Rome,100,2001\nBob,Male,45,No,0,Oslo,150,2002\n"
    "Cyd,Female,52,No,1,Rome,120,2003\nDan,Male,28,Yes,1,Oslo,90,2004\n"
    "Eve,Female,39,No,0,Rome,200,2005\nEve,Female,39,No,0,Rome,200,2005\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("share of smokers", "where `smoker` is Yes"), ("how many voted?", "where `voted` is 1"),
        ("how many people did not vote?", "where `voted` is 0"),
        ("average age of the non-smokers", "where `smoker` is No"),
        ("mean age of smokers vs non-smokers", "Mean of `age` per `smoker`"),
        ("smoker rate by city", "Share of rows per `city` in percent where `smoker` is Yes"),
        ("average pay of women", "Mean of `salary` where `sex` is Female"),
        ("do men earn more than women?", "Mean of `salary` per `sex`"),
        ("Rome vs Oslo average age", "Mean of `age` per `city`"),
        ("how many men and women?", "Number of rows per `sex`"),
        ("averge age per city", "Mean of `age` per `city`"),
        ("how did the age develop over the years?", "Line chart of `age` over `year`"),
        ("show the trend of salary over time", "Line chart of `salary` over `year`"),
        ("are there duplicate rows?", "Number of duplicate rows"),
        ("duplicates in name", "Number of duplicates of `name`"),
        ("what cities are there?", "Distinct values of `city`"),
        ("durchschnittsalter pro city", "Mean of `age` per `city`"),
    ],
)  # fmt: skip
def test_questions_in_other_words(about: About, text: str, said: str) -> None:
    assert said in about({"people.csv": PEOPLE}).say(text).text.partition("\n")[0]


def test_a_refusal_offers_a_question_that_works(about: About) -> None:
    talk = about({"people.csv": PEOPLE})
    for text in ("sing a song", "delete everything", "7", "x " * 250):
        assert talk.say(text).is_question
        assert "per" in talk.say("yes").text.partition("\n")[0]
