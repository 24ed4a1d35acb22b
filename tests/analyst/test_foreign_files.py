"""Questions over files of other people: columns beside each other, long tables, units."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.questions.in_process import Conversation

About = Callable[..., Conversation]
RIDES = "year,month,day,line,delay,scheduled_utc\n" + "\n".join(
    f"2021,{month},{day},{line},{day * 7 % 11 + n},2021-{month:02}-{day:02}T{23 - n}:15:00Z"
    for month in (3, 4, 11)
    for day in range(1, 29)
    for n, line in enumerate(["N1", "N2", "S4"])
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("monthly average delay", "Mean of `delay` per `month`"),
        ("mean delay per month", "Mean of `delay` per `month`"),
        ("which month has the worst average delay?", "`month` with the largest mean of `delay`"),
        ("how many rides in April?", "Number of rows where `month` is 4"),
        ("mean delay in the fourth quarter", "where `month` is 10, 11 or 12"),
        ("mean delay in March 2021", "where `year` is 2021 and `month` is 3"),
        ("mean delay on 2021-11-05", "`year` is 2021 and `month` is 11 and `day` is 5"),
        ("which day had the most rides?", "`year`, `month` and `day` with the largest number"),
        ("rides per day in April", "Number of rows per `year`, `month` and `day` where `month` is"),
        ("which day of the month has the highest mean delay?", "`day` with the largest mean"),
        ("which weekday had the most rides?", "Weekday of `scheduled_utc` with the largest"),
        ("rides per month of scheduled_utc", "per month of `scheduled_utc`"),
    ],
)
def test_parts_of_a_date_have_their_own_columns(about: About, text: str, said: str) -> None:
    assert said in about({"rides.csv": RIDES}).say(text).text.partition("\n")[0]


def test_a_picture_of_days_in_three_columns_is_refused(about: About) -> None:
    assert about({"rides.csv": RIDES}).say("plot the number of rides per day").is_question


def test_dates_without_a_time_of_day_name_the_days(about: About) -> None:
    rows = [line.replace("T23:15:00Z", "") for line in RIDES.splitlines() if "N1" in line]
    talk = about({"rides.csv": "\n".join([RIDES.partition("\n")[0], *rows, rows[0]])})
    assert "**2021-03-01**" in talk.say("which day had the most rides?").text


RATES = "day,bank,rate\n" + "\n".join(
    f"2022-01-{day:02},{bank},{at + day / 10}"
    for at, bank in enumerate(["Adler", "Bord", "Cinto"], start=1)
    for day in range(1, 31)
)
SHOPS = "year,shop,sales,rating\n" + "\n".join(
    f"{year},Shop {shop},{shop * year % 90},{shop % 5}"
    for year in range(2010, 2016)
    for shop in range(40)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate over time", "Line chart of `rate` over `day` per `bank`"),
        ("line chart of the rate", "Line chart of `rate` over `day` per `bank`"),
        ("rate of Bord over time", "Line chart of `rate` over `day` where `bank` is Bord"),
        ("which bank had the highest rate?", "Does"),
        ("which rate was the highest?", "Maximum of `rate`"),
    ],
)
def test_a_line_is_drawn_for_each_group_of_a_long_table(about: About, text: str, said: str) -> None:
    assert about({"rates.csv": RATES}).say(text).text.startswith(said)


def test_rows_that_no_few_groups_tell_apart_make_no_line(about: About) -> None:
    talk = about({"shops.csv": SHOPS})
    assert "Say mean or total of sales" in talk.say("plot sales over time").text
    assert "mean of `rating` per `year`" in talk.say("how did the rating develop?").text


def test_the_row_of_an_extreme_is_shown_with_its_name(about: About) -> None:
    talk = about({"bonds.csv": RATES.replace("bank", "emitter")})
    assert "Cinto" in talk.say("which bond had the highest rate?").text


PARCELS = "kind,weight_g,length_cm,price_eur,age\n" + "\n".join(
    f"{kind},{grams},{grams / 100},{grams / 500},{grams // 100}"
    for grams in range(200, 9000, 400)
    for kind in ("crate", "roll")
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many parcels are heavier than 3 kg", "where `weight_g` is more than 3000"),
        ("how many parcels are heavier than 3kg", "where `weight_g` is more than 3000"),
        ("mean age of crates with a length over 0.5 m", "`length_cm` is more than 50"),
        ("how many with more than 2 pounds weight", "`weight_g` is more than 907.18474"),
        ("mean price of crates under 2 kg", "where `kind` is crate and `weight_g` is less than"),
        ("parcels with a price above 5 euros", "where `price_eur` is more than 5"),
    ],
)
def test_a_number_is_compared_in_the_unit_of_its_column(about: About, text: str, said: str) -> None:
    assert said in about({"parcels.csv": PARCELS}).say(text).text.partition("\n")[0]


def test_a_conversion_is_said(about: About) -> None:
    talk = about({"parcels.csv": PARCELS})
    assert "“kg” as 1000 g" in talk.say("how many parcels weigh over 3kg?").text


@pytest.mark.parametrize(
    "text",
    [
        "parcels with a price above 5 dollars", "how many parcels are heavier than 3 stone",
        "how many parcels have an age over 3 hours", "parcels with a weight over 7 miles",
    ],
)  # fmt: skip
def test_a_unit_that_a_column_does_not_have_is_not_dropped(about: About, text: str) -> None:
    talk = about({"parcels.csv": PARCELS})
    assert talk.say(text).is_question
    assert "more than" not in talk.say("yes").text


@pytest.mark.parametrize("named", ["and in shops.csv?", "what about shops?", "now for `shops.csv`"])
def test_a_file_that_is_named_is_the_subject_from_then_on(about: About, named: str) -> None:
    talk = about({"rates.csv": RATES, "shops.csv": SHOPS})
    talk.say("mean rate per bank in rates.csv")
    assert "cannot be asked of `shops.csv`" in talk.say(named).text
    assert "(240 rows)" in talk.say("how many rows?").text


def test_the_last_question_is_put_to_a_file_that_is_named(about: About) -> None:
    talk = about({"a.csv": SHOPS, "b.csv": SHOPS.replace(",Shop 1,", ",Other,")})
    talk.say("mean sales per shop in a.csv")
    talk.say("only 2010")
    said = talk.say("and in b.csv?").text
    assert said.startswith("Mean of `sales` per `shop` where `year` is 2010")
    assert "Other" in said


@pytest.mark.parametrize(
    ("asked", "change", "said"),
    [
        ("top 2 makers by mean mpg", "and by weight?", "Top 2 `maker` by mean of `weight`"),
        ("top 3 cars by mpg", "by weight instead", "Top 3 rows by `weight`"),
        ("top 2 makers by mean mpg", "and by cylinders", "Top 2 `cylinders` by mean of `mpg`"),
    ],
)
def test_a_ranking_is_repeated_by_another_column(
    about: About, asked: str, change: str, said: str
) -> None:
    makers = [(maker, n) for maker in ("Ada", "Bo", "Cy") for n in range(1, 9)]
    rows = [f"{maker},{n * len(maker)}.5,{n * 100},{4 + n % 3}" for maker, n in makers]
    talk = about({"cars.csv": "\n".join(["maker,mpg,weight,cylinders", *rows])})
    talk.say(asked)
    assert said in talk.say(change).text


@pytest.mark.parametrize("text", ["plot rain per year", "which year had the most rain?"])
def test_an_amount_is_no_number_of_rows(about: About, text: str) -> None:
    rows = [f"{day}.{month}.2020,{day * month % 7},{('rain', 'sun')[day % 2]}"
            for month in range(1, 13) for day in range(1, 28)]  # fmt: skip
    said = about({"sky.csv": "\n".join(["date,rainfall_mm,sky", *rows])}).say(text)
    assert "Say the number of rows, or the total of `rainfall_mm`" in said.text


FIRMS = "name,land,branch,sales,funny,scary\n" + "\n".join(
    f"{name},{('Norway', 'Chile')[n % 2]},{branch},{n * 7 % 29 + n / 10},{n % 2},{n // 3 % 2}"
    for n, (name, branch) in enumerate(
        [("Wharf", "Trading companies"), ("Acme", "Mining"), ("Dune", "Drug stores")] * 4, start=1
    )
).replace("Wharf,Chile", "Mine,Chile", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many companies are in the list?", "Number of rows (12 rows)"),
        ("top 2 companies by sales", "Top 2 rows by `sales`"),
        ("which companies have sales over 20", "Rows where `sales` is more than 20"),
    ],
)
def test_a_noun_for_rows_is_no_part_of_a_value(about: About, text: str, said: str) -> None:
    assert said in about({"firms.csv": FIRMS}).say(text).text.replace(
        "`name` and `sales` of t", "T"
    )


@pytest.mark.parametrize(
    "text", ["companies with sales over 20 billion", "share of firms with a branch"]
)
def test_what_the_values_contradict_is_refused(about: About, text: str) -> None:
    assert about({"firms.csv": FIRMS}).say(text).is_question


def test_a_row_is_not_asked_for_the_largest_of_it(about: About) -> None:
    rows = [f"{name},{n}00" for n, name in enumerate(["Bank", "Post", "Inn", "Mill"], start=1)]
    assert (
        about({"f.csv": "\n".join(["name,debt", *rows])})
        .say("which bank has most debt?")
        .is_question
    )


def test_which_one_is_one_of_the_rows_before(about: About) -> None:
    talk = about({"cars.csv": "make,price\n" + "\n".join(f"m{n % 3},{n}00" for n in range(1, 30))})
    talk.say("how many cars have a price over 500?")
    said = talk.say("which one is the cheapest?").text
    assert said.startswith("Row with the smallest `price` where `price` is more than 500")
    talk.say("top 5 cars by price")
    assert talk.say("which one is the cheapest?").is_question
    talk.say("how many cars under a tree have a price?")
    assert talk.say("which one is the cheapest?").is_question


def test_one_column_of_yes_and_no_after_another_is_not_added(about: About) -> None:
    talk = about({"firms.csv": FIRMS})
    assert "where `funny` is 1" in talk.say("how many are funny?").text
    assert "`funny` is 1 and" not in talk.say("and scary?").text
    talk.say("how many are funny?")
    assert "`funny` is 1 and `scary` is 1" in talk.say("only scary ones").text


def test_several_offers_are_taken_one_after_the_other(about: About) -> None:
    talk = about({"shops.csv": SHOPS})
    talk.say("what is in it?")
    first = talk.say("1").text
    assert talk.say("2").text.partition("\n")[0] != first.partition("\n")[0]
    assert talk.say("1").text == first


def test_a_folder_that_is_not_written_to_is_not_passed_over(about: About) -> None:
    talk = about({"shops.csv": SHOPS})
    talk.say("mean sales per shop")
    said = talk.say("save it to /tmp/elsewhere/shops_mean.csv").text
    assert "`shops_mean.csv` is in the folder of this conversation" in said


def test_a_column_that_names_the_rows_is_their_noun(about: About) -> None:
    rows = [f"Judge {n},{('North', 'South')[n % 2]},{40 + n % 9}" for n in range(30)]
    talk = about({"court.csv": "\n".join(["judge,region,age", *rows])})
    assert talk.say("average age of judges per region").text.startswith(
        "Mean of `age` per `region`"
    )
