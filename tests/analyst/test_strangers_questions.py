"""Kinds of questions that were answered wrongly or refused: about other files, in other words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.questions.in_process import Conversation

About = Callable[..., Conversation]
KINDS = ("Repair shops", "Bakery", "Book trade", "Shipping")
SHOPS = "name,kind,town,turnover,phone,web,grade,desks,year\n" + "\n".join(
    f"{'Bakery' if at == 7 else f'Firm {at}'},{KINDS[at % 4]},{town},{at / 4},"
    f"{at if at % 3 else ''},{'x.example' if at % 5 == 0 else ''},{'ABC'[at % 3]},"
    f"{at % 50 / 10},{1990 + at % 9}"
    for at, town in enumerate(["Bern", "Oslo", "Rome"] * 50)
)
PLANTS = "height,fern,moss,herb,pot\n" + "\n".join(
    f"{at * 7 % 31},{int(at % 2 == 0)},{int(at % 3 == 0)},{int(at % 5 == 0)},{at % 4}"
    for at in range(60)
)


@pytest.fixture
def shops(about: About) -> Conversation:
    return about({"register.csv": SHOPS})


@pytest.fixture
def plants(about: About) -> Conversation:
    return about({"greenhouse.csv": PLANTS})


def heads(talk: Conversation, *texts: str) -> list[str]:
    """Return the first lines of the answers to some requests."""
    return [talk.say(text).text.partition("\n")[0] for text in texts]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many shops are in the list?", "Number of rows (150 rows)"),
        ("how many shipping shops", "Number of rows where `kind` is Shipping"),
        ("shops with a phone", "Rows where `phone` is not missing"),
        ("how many have no web", "Number of rows where `web` is missing"),
        ("share of shops with a web", "Share of rows in percent where `web` is not missing"),
        ("shops with turnover over 30", "Rows where `turnover` is more than 30"),
    ],
)
def test_a_noun_for_rows_is_no_value(shops: Conversation, text: str, said: str) -> None:
    assert heads(shops, text)[0].startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "which Oslo bakery has the largest turnover?",  # one row is called Bakery
        "shops with turnover over 2 billion",  # a column may count in billions
        "share of shops with a grade turnover",
    ],
)
def test_a_doubtful_question_is_refused(shops: Conversation, text: str) -> None:
    assert shops.say(text).is_question


def test_a_kind_after_which_is_a_value_of_a_column_of_kinds(shops: Conversation) -> None:
    said = heads(shops, "which bakery has the largest turnover?")[0]
    assert said.startswith("`name` and `turnover` of row with the largest `turnover`")
    assert said.endswith("where `kind` is Bakery (38 rows)")


def test_another_kind_takes_the_place_of_the_one_before(plants: Conversation) -> None:
    first, other, fewer = heads(
        plants, "how many ferns?", "and mosses that are not herbs?", "how many of them are ferns?"
    )
    assert first == "Number of rows where `fern` is 1 (30 rows)"
    assert other == "Number of rows where `moss` is 1 and `herb` is 0 (16 rows)"
    assert fewer == "Number of rows where `moss` is 1 and `herb` is 0 and `fern` is 1 (8 rows)"


def test_one_of_the_rows_before_is_shown_whole(plants: Conversation) -> None:
    plants.say("how many have a height below 9")
    assert heads(plants, "which one is the tallest?", "which plant has the largest pot?") == [
        "Row with the largest `height` where `height` is less than 9 (18 rows)",
        "Row with the largest `pot` (60 rows)",
    ]


def test_one_of_refused_rows_is_none_of_all(plants: Conversation) -> None:
    assert plants.say("how many frobnicated plants below 9").is_question
    assert plants.say("which one is the tallest?").is_question


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("how many are in Oslo", "which town has the fewest?"), "`town` with the smallest number"),
        (
            ("plot the number of shops per year", "which year has the most?"),
            "`year` with the largest number of rows (150 rows)",
        ),
        (("list the kinds", "how many of each?"), "Number of rows per `kind`"),
        (
            ("total turnover of Repair shops", "which town has the most?"),
            "`town` with the largest sum of `turnover` where `kind` is",
        ),
        (
            ("how many are in Rome", "what share is that of the total?"),
            "Share of rows in percent where `town` is Rome (150 rows)",
        ),
        (
            ("correlation of turnover and desks", "draw it"),
            "Scatter plot of `desks` against `turnover`",
        ),
        (
            ("top 4 by turnover in Oslo", "by desks instead"),
            "`name` and `desks` of top 4 rows by `desks` where `town` is Oslo",
        ),
    ],
)
def test_a_follow_up_changes_the_answer_before(
    shops: Conversation, texts: tuple[str, ...], said: str
) -> None:
    assert heads(shops, *texts)[-1].startswith(said)


@pytest.mark.parametrize(
    "texts",
    [
        ("mean turnover", "what share is that of the total?"),
        ("mean turnover", "how many of each?"),
        ("correlation of turnover and desks", "as a pie chart"),
        ("which town has the fewest?",),
        ("plot the turnover by kind over the years", "which year has the most?"),
    ],
)
def test_a_follow_up_of_no_sense_is_refused(shops: Conversation, texts: tuple[str, ...]) -> None:
    assert [shops.say(text) for text in texts][-1].is_question


LETS = "rent,central_heating,prefloor,lift,rooms,year\n" + "\n".join(
    f"{500 + at * 13 % 400},{'yes' if at % 2 else 'no'},{'yes' if at % 3 else 'no'},"
    f"{'no' if at % 5 else 'yes'},{1 + at % 4},{1971 + at}"
    for at in range(40)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plot rent and rooms over time", "Line chart of `rent` and `rooms` over `year`"),
        (
            "how did the rent develop since 1990?",
            "Line chart of `rent` over `year` where `year` is at least 1990",
        ),
        ("mean rent by number of rooms", "Mean of `rent` per `rooms`"),
        ("how many have central heating?", "Number of rows where `central_heating` is yes"),
        ("mean rent in the preferred floor", "Mean of `rent` where `prefloor` is yes"),
        ("number of rows per decade", "Number of rows per decade of `year`"),
        ("which decade has the highest mean rent", "Decade of `year` with the largest mean"),
        (
            "how much more expensive are those with a lift?",
            "Difference of the mean of `rent` between `lift` is yes and `lift` is no",
        ),
    ],
)
def test_the_grammar_of_any_file_is_read(about: About, text: str, said: str) -> None:
    assert heads(about({"lets.csv": LETS}), text)[0].startswith(said)


def test_decades_of_times_begin_with_their_first_year(about: About) -> None:
    dates = "\n".join(f"{year}-03-0{1 + year % 9},{year}" for year in range(1985, 2004))
    talk = about({"visits.csv": f"seen,guests\n{dates}\n,5"})
    lines = talk.say("number of rows per decade").text.split("\n")
    assert [line.split() for line in lines if line[:3].isdigit()] == [
        ["1980", "5"],
        ["1990", "10"],
        ["2000", "4"],
    ]


@pytest.mark.parametrize(
    ("texts", "said", "note"),
    [
        (("averge turnover per kind",), "Mean of `turnover` per `kind`", "is read as average"),
        (("histogrm of turnover",), "Histogram of `turnover`", "`histogrm` is read as histogram"),
        (("mean turnover per kind", "per town insted"), "Mean of `turnover` per `town`", "instead"),
    ],
)
def test_a_typing_error_of_a_function_word_is_read(
    shops: Conversation, texts: tuple[str, ...], said: str, note: str
) -> None:
    answer = [shops.say(text) for text in texts][-1].text
    assert answer.startswith(said)
    assert note in answer


@pytest.mark.parametrize("text", ["how many charges are there", "sprint turnover per kind"])
def test_another_word_is_no_typing_error(shops: Conversation, text: str) -> None:
    assert shops.say(text).is_question


def test_a_file_with_a_column_of_the_name_is_meant(about: About) -> None:
    beds = "\n".join(f"2024-01-{day:02},{day}" for day in range(1, 29))
    inns = "\n".join(f"Inn {day % 5},{90 + day},{day % 7 in (6, 0)}" for day in range(1, 29))
    talk = about({"beds.csv": f"date,beds\n{beds}", "inns.csv": f"inn,points,Weekend\n{inns}"})
    assert heads(talk, "how many visits were there at the weekend?") == [
        "Number of rows where `Weekend` is true (8 rows)"
    ]


SALES = "town,year,sales,volume\n" + "\n".join(
    f"{town},{year},{10 + n},{n}.5"
    for n, (town, year) in enumerate((t, y) for t in ("Bergen", "Oslo") for y in range(2001, 2009))
)
THEFTS = "canton,coast,total\n" + "\n".join(
    f"canton {n},{('north', 'south')[n % 2]},{n * 3}" for n in range(1, 13)
)
COMETS = "name,year,tail\n" + "\n".join(
    f"{name},{year},{at}" for name in ("Ada", "Bo") for year in (2001, 2002) for at in range(6)
)


@pytest.mark.parametrize(
    ("file", "content", "text", "reason"),
    [
        ("homes.csv", SALES, "how many homes were sold in Oslo?", "which column or table counts"),
        ("thefts.csv", THEFTS, "thefts per coast", "or `total` is added up"),
        ("thefts.csv", THEFTS, "how many thefts in canton 3?", "or `total` is added up"),
        ("comets.csv", COMETS, "how many comets per year?", "or different `name`"),
        ("comets.csv", COMETS, "how many comets in 2002?", "or different `name`"),
    ],
)
def test_rows_that_are_other_things_are_not_counted(
    about: About, file: str, content: str, text: str, reason: str
) -> None:
    answer = about({file: content}).say(text)
    assert answer.is_question
    assert reason in answer.text


@pytest.mark.parametrize(
    "text", ["what has the most desks?", "what had the highest desks", "was hat die meisten desks?"]
)
def test_what_has_the_most_asks_for_the_row(shops: Conversation, text: str) -> None:
    (said,) = heads(shops, text)
    assert said == "`name` and `desks` of row with the largest `desks` (150 rows)"
    assert shops.say("who has the most desks per town?").is_question


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("which town has the largest shops?", "understand: largest."),
        ("which town has the 2 smallest shops?", "understand: 2, smallest."),
        ("which town has the heaviest shops?", "understand: heaviest."),
        ("Welche town hat die größten shops?", "understand: größten."),
    ],
)
def test_a_size_of_rows_is_no_number_of_rows(shops: Conversation, text: str, said: str) -> None:
    answer = shops.say(text)
    assert answer.is_question
    assert said in answer.text


@pytest.mark.parametrize("most", ["most", "largest number of", "highest number of"])
def test_the_number_of_rows_is_ranked_where_it_is_said(shops: Conversation, most: str) -> None:
    (said,) = heads(shops, f"which town has the {most} shops?")
    assert said == "`town` with the largest number of rows (150 rows)"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("turnover in Oslo in 1993", "which town has the most?"), " where `year` is 1993"),
        (("turnover in Oslo in 1993", "which town has the most overall?"), " (150 rows)"),
        (("turnover of bakeries in 1993", "which town has the most overall?"), ""),
        (("turnover in Oslo in 1993", "welche town hat insgesamt die meisten?"), ""),
    ],
)
def test_a_rank_overall_is_of_all_years(
    shops: Conversation, texts: tuple[str, ...], said: str
) -> None:
    answer = [shops.say(text) for text in (f"total {texts[0]}", texts[1])][-1]
    head = answer.text.partition("\n")[0]
    assert answer.is_question or head.startswith(f"`town` with the largest sum of `turnover`{said}")
    assert answer.is_question == (not said)


@pytest.mark.parametrize("text", ["is there anything missing?", "fehlt irgendetwas?"])
def test_anything_missing_is_asked_of_each_column(shops: Conversation, text: str) -> None:
    assert heads(shops, text) == ["Missing values per column of `register.csv`"]


def test_the_speed_of_wind_is_a_column_of_wind(about: About) -> None:
    gales = "port,wind,depth\n" + "\n".join(
        f"{'Kiel' if at % 2 else 'Ulm'},{at},2" for at in range(9)
    )
    talk = about({"gales.csv": gales})
    assert heads(talk, "mean wind speed per port", "and the maximum?") == [
        "Mean of `wind` per `port` (9 rows)",
        "Maximum of `wind` per `port` (9 rows)",
    ]
    assert talk.say("mean depth speed").is_question


def test_the_rows_behind_a_number_are_asked_for_in_german(shops: Conversation) -> None:
    said = heads(shops, "wie viele shops gibt es in Oslo?", "Welche?")[-1]
    assert said.startswith("Rows where `town` is Oslo (50 rows")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many different", "how many different"),
        ("Summe je town", "Summe"),
        ("which town has the largest median", "median"),
    ],
)
def test_a_function_without_a_column_is_named_as_typed(
    shops: Conversation, text: str, said: str
) -> None:
    answer = shops.say(text).text
    assert answer.startswith(f"Name the column of “{said}”.")
    assert not answer.endswith((" sum.", "nunique."))


@pytest.mark.parametrize("refused", ["only 1995 and later", "since 1995", "please show Oslo"])
def test_a_whole_question_takes_no_filter_of_a_refused_one(
    shops: Conversation, refused: str
) -> None:
    shops.say("average blorb of shops by year")
    assert shops.say(refused).is_question
    assert heads(shops, "in which town are most shops?") == [
        "`town` with the largest number of rows (150 rows)"
    ]


@pytest.mark.parametrize("share", ["what share is that?", "what percentage?", "percentage"])
def test_a_share_of_refused_rows_is_none_of_all_rows(shops: Conversation, share: str) -> None:
    refused = [shops.say(text).is_question for text in ("how many shops blorbed?", share)]
    assert [*refused, shops.say("by town").is_question, shops.say("and by kind?").is_question] == (
        [True] * 4
    )


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("how many are from Oslo",), "more than 3 and `town` is Oslo (19"),
        (("how many have a phone",), "more than 3 and `phone` is not missing (38"),
        (("how many shops are in Oslo",), "Number of rows where `town` is Oslo (50"),
        (("how many are there per town",), "per `town` where `desks` is more than 3 (57"),
        (("which one has the largest turnover?", "how many are in Rome"), "`town` is Rome (50"),
    ],
)
def test_rows_without_a_noun_are_those_of_the_list(
    shops: Conversation, texts: tuple[str, ...], said: str
) -> None:
    assert said in heads(shops, "shops with desks over 3", *texts)[-1]


@pytest.mark.parametrize(
    "texts",
    [
        ("blorb the shops with desks over 3", "how many are in Rome"),
        ("top 5 by turnover", "how many are in Rome"),
        ("how many shops in Oslo have desks over 3", "how many have a phone"),
        ("shops with desks over 3", "how many are from Oslo", "how many are from Rome"),
    ],
)
def test_rows_without_a_noun_and_a_list_are_refused(
    shops: Conversation, texts: tuple[str, ...]
) -> None:
    assert [shops.say(text) for text in texts][-1].is_question


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("how many shops", "list Oslo"), "Rows where `town` is Oslo (50"),
        (("which shop has the largest turnover", "show me Oslo"), "Rows where `town` is Oslo (50"),
        (("which town has the most shops", "show the Rome shops"), "Rows where `town` is Rome (50"),
        (("top 5 by turnover", "list Rome"), "Rows where `town` is Rome (50"),
        (("mean turnover", "show for Oslo"), "Mean of `turnover` where `town` is Oslo (50"),
    ],
)
def test_a_list_after_a_number_or_a_rank_is_of_rows(
    shops: Conversation, texts: tuple[str, ...], said: str
) -> None:
    assert heads(shops, *texts)[-1].startswith(said)


def test_a_list_after_a_number_of_some_rows_is_refused(shops: Conversation) -> None:
    shops.say("how many shops have desks over 3")
    assert shops.say("show me Oslo").is_question


@pytest.mark.parametrize("asked", ["save them as csv", "export the rows to part.csv"])
def test_the_rows_behind_a_number_are_saved(shops: Conversation, asked: str) -> None:
    said = heads(shops, "how many are in Oslo", asked)[-1]
    assert said.startswith("Rows where `town` is Oslo, saved as")
    assert said.endswith("(50 rows)")


def test_a_number_is_saved_as_it_and_has_no_rows_to_save(shops: Conversation) -> None:
    assert heads(shops, "how many are in Oslo", "save it as csv")[-1].startswith("Number of rows")
    for number in ("mean turnover", "how many different towns"):
        shops.say(number)
        assert shops.say("save them as csv").is_question
