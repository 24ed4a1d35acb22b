"""Requests and the readings they have, in words; ` -> ` stands between those of a conversation."""

from __future__ import annotations

import pytest
import reading_worlds as worlds
from reading_worlds import said, world

from taskweaver.tables.files.profile import TableProfile

CONDITIONS: list[tuple[TableProfile, str, dict[str, str]]] = [
    (worlds.FLIGHTS, "dep_delay", {
        "of Delta": "`carrier` is Delta",
        "where carrier is Delta and origin is JFK": "`carrier` is Delta and `origin` is JFK",
        "for Delta or United": "`carrier` is Delta or United",
        "of Delta flights from JFK to Los Angeles": (
            '`carrier` is Delta and `origin` is JFK and `destination` is "Los Angeles"'
        ),
        "of Japanese flights": "`destination` is Japan",
        "except Delta": "`carrier` is not Delta",
        "for all carriers except Delta and United": "`carrier` is neither Delta nor United",
        "neither from JFK nor from LGA": "`origin` is neither JFK nor LGA",
        "of flights that do not start at JFK": "`origin` is not JFK",
        "of Delta but not from JFK": "`carrier` is Delta and `origin` is not JFK",
        "where distance is between 100 and 200": (
            "`distance` is at least 100 and `distance` is at most 200"
        ),
        "with a distance of 50k or more": "`distance` is at least 50000",
        "with at most 1,500 distance": "`distance` is at most 1500",
        "where the discount is above 20%": "`discount` is more than 0.2",
        "where dep_delay exceeds arr_delay": "`dep_delay` is more than `arr_delay`",
        "with distance under 50 or arr_delay over 10": (
            "`distance` is less than 50 or `arr_delay` is more than 10"
        ),
        "where distance is missing": "`distance` is missing",
        "with a known distance": "`distance` is not missing",
        "in 2023": "`date` is in 2023",
        "since June 2023": "`date` is 2023-06-01 or later",
        "before May 2023": "`date` is before 2023-05-01",
        "after 2023-05-04": "`date` is 2023-05-05 or later",
        "until March 2023": "`date` is before 2023-04-01",
        "from March to May 2023": "`date` is from 2023-03-01 to 2023-05-31",
        "between 1 March 2023 and 15 March 2023": "`date` is from 2023-03-01 to 2023-03-15",
        "in January and February 2023": "`date` is from 2023-01-01 to 2023-02-28",
        "in Q3 2023": "`date` is in Q3 2023",
        "in the first half of 2023": "`date` is from 2023-01-01 to 2023-06-30",
        "in summer 2023": "`date` is from 2023-06-01 to 2023-08-31",
        "in 2023 or later": "`date` is 2023-01-01 or later",
        "in January": "`date` is in January",
        "on weekends": "`date` is on a Saturday or Sunday",
        "in the last 3 months": "`date` is in the last 3 months",
    }),
    (worlds.NATIONS, "lifeExp", {
        "in 2007": "`year` is 2007",
        "before 2000": "`year` is less than 2000",
        "since 2000": "`year` is at least 2000",
        "from 1995 to 2000": "`year` is at least 1995 and `year` is at most 2000",
        "in the last 5 years": "`year` is in the last 5 years",
        "of African countries": "`continent` is Africa",
    }),
    (worlds.SHIP, "fare", {
        "of women": "`sex` is female",
        "of men": "`sex` is male",
        "in third class": '`pclass` is "3rd"',
        "in 1st class": '`pclass` is "1st"',
        "of second class passengers": '`pclass` is "2nd"',
        "in first or second class": '`pclass` is "1st" or "2nd"',
        "not in 1st or 2nd class": '`pclass` is neither "1st" nor "2nd"',
        "of passengers not older than 65, women only": "`age` is at most 65 and `sex` is female",
        "of passengers who are not women, 1st class": '`sex` is not female and `pclass` is "1st"',
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("here", "name", "words", "where"),
    [(here, name, *pair) for here, name, pairs in CONDITIONS for pair in pairs.items()],
)
def test_a_condition_is_read(here: TableProfile, name: str, words: str, where: str) -> None:
    assert said(world(here), f"mean {name} {words}") == f"mean of `{name}` where {where}"


READ: list[tuple[TableProfile, dict[str, str]]] = [
    (worlds.FLIGHTS, {
        "how many flights are there?": "number of rows",
        "how many flights have a negative arrival delay": (
            "number of rows where `arr_delay` is less than 0"
        ),
        "show me the top 3 -> by distance": "top 3 rows by `distance`",
        "share of carriers": "share of the number of rows per `carrier`, in percent",
        "percentile 90 of dep_delay": "90th percentile of `dep_delay`",
        "number of different carriers": "number of distinct `carrier`",
        "how many carriers are there": "number of distinct `carrier`",
        "mean and median of distance": "mean and median of `distance`",
        "average departure delay per carrier and origin": (
            "mean of `dep_delay` per `carrier` and `origin`"
        ),
        "total distance per month": "sum of `distance` per month of `date`",
        "total distance by weekday": "sum of `distance` per weekday of `date`",
        "mean dep_delay of Delta and United": (
            "mean of `dep_delay` per `carrier` where `carrier` is Delta or United"
        ),
        "mean dep_delay of Delta and United combined": (
            "mean of `dep_delay` where `carrier` is Delta or United"
        ),
        "90th percentile of distance": "90th percentile of `distance`",
        "second largest distance": "second largest value of `distance`",
        "correlation between distance and dep_delay": "correlation of `distance` and `dep_delay`",
        "mean of distance / arr_delay": "mean of `distance` / `arr_delay`",
        "mean ratio of distance to arr_delay": "mean of `distance` / `arr_delay`",
        "which carrier has the highest mean distance?": (
            "`carrier` with the largest mean of `distance`"
        ),
        "which origin has the fewest flights": "`origin` with the smallest number of rows",
        "top 2 carriers by total distance": "top 2 `carrier` by sum of `distance`",
        "carrier with the second highest mean dep_delay": (
            "`carrier` with the second largest mean of `dep_delay`"
        ),
        "what percentage of flights are from JFK?": (
            "share of rows in percent where `origin` is JFK"
        ),
        "share of flights per origin": "share of the number of rows per `origin`, in percent",
        "difference in mean dep_delay between Delta and United": (
            "difference of the mean of `dep_delay` between `carrier` is Delta and "
            "`carrier` is United"
        ),
        "year over year growth of total distance": (
            "relative change in percent of the sum of `distance` per year of `date`"
        ),
        "cumulative distance per month": "cumulative sum of `distance` per month of `date`",
        "bar chart of mean dep_delay by carrier": "bar chart of mean of `dep_delay` per `carrier`",
        "first 3 rows": "first 3 rows",
        "last 2 rows": "last 2 rows",
        "show the 3 largest flights by distance times dep_delay": (
            "top 3 rows by `distance` * `dep_delay`"
        ),
        "biggest month over month drop of the mean Delta distance": (
            "month of `date` with the smallest change of the mean of `distance` where "
            "`carrier` is Delta"
        ),
        "the top distance": "maximum of `distance`",
        "top 3 flights by distance": "top 3 rows by `distance`",
        "mean dep_delay per month as a line": (
            "line chart of mean of `dep_delay` per month of `date`"
        ),
        "flights with a distance over 500": "rows where `distance` is more than 500",
        "arr_delay of Delta flights": "`arr_delay` of rows where `carrier` is Delta",
        "histogram of distance": "histogram of `distance`",
        "scatter plot of distance against dep_delay": (
            "scatter plot of `distance` against `dep_delay`"
        ),
        "box plot of distance per carrier": "box plot of `distance` per `carrier`",
        "plot distance over time": "line chart of `distance` over `date`",
        "which columns are there": "columns of `flights.csv`",
        "summary statistics": "description of `flights.csv`",
        "unique destinations": "distinct values of `destination`",
        "which carriers fly from JFK": "distinct values of `carrier` where `origin` is JFK",
        "missing values per column": "missing values per column of `flights.csv`",
        "how many columns are there": "number of rows and columns of `flights.csv`",
        "mean distance from 2023 -> since": (
            "mean of `distance` where `date` is 2023-01-01 or later"
        ),
    }),
    (worlds.RACES, {
        "who had the fastest time": "row with the smallest `time`",
        "mean time where hour after 6": "mean of `time` where `hour` is more than 6",
    }),
    (worlds.NATIONS, {
        "mean pop of Japan in 2007 -> plot lifeExp per year for Germany, France and Japan": (
            "line chart of mean of `lifeExp` per `year` and `country`"
            " where `country` is Germany, France or Japan"
        ),
        "mean pop in Africa -> compare the lifeExp of France and Japan in 2007": (
            "mean of `lifeExp` per `country` where (`country` is France or Japan)"
            " and `year` is 2007"
        ),
        "mean lifeExp of Germany, France, Japan": (
            "mean of `lifeExp` per `country` where `country` is Germany, France or Japan"
        ),
        "compare France and Japan lifeExp over time in a line chart": (
            "line chart of `lifeExp` over `year` per `country`"
            " where `country` is France or Japan"
        ),
        "mean lifeExp of France and Japan per year as a line chart": (
            "line chart of mean of `lifeExp` per `year` and `country`"
            " where `country` is France or Japan"
        ),
        "mean lifeExp in the 90s": (
            "mean of `lifeExp` where `year` is at least 1990 and `year` is at most 1999"
        ),
        "mean lifeExp from 1995 -> since": "mean of `lifeExp` where `year` is at least 1995",
        "mean lifeExp from 1995 -> in": "mean of `lifeExp` where `year` is 1995",
        "mean lifeExp from 1995 on": "mean of `lifeExp` where `year` is at least 1995",
        "mean lifeExp ab 1995": "mean of `lifeExp` where `year` is at least 1995",
        "mean lifeExp from 1995 to 2000": (
            "mean of `lifeExp` where `year` is at least 1995 and `year` is at most 2000"
        ),
        "highest lifeExp in Africa -> which year was that": (
            "row with the largest `lifeExp` where `continent` is Africa"
        ),
        "lowest lifeExp -> in welchem Jahr war das?": "row with the smallest `lifeExp`",
        "highest lifeExp -> which country was that -> what year was it": (
            "`year` of row with the largest `lifeExp`"
        ),
        "mean lifeExp in Germany -> compare to France and Japan": (
            "mean of `lifeExp` per `country` where `country` is Germany, France or Japan"
        ),
        "mean lifeExp in Germany -> compare it with France": (
            "mean of `lifeExp` per `country` where `country` is Germany or France"
        ),
        "mean lifeExp in 1995 -> gdpPercap over time": (
            "line chart of mean of `gdpPercap` per `year`"
        ),
        "average lifeExp over the years": "line chart of mean of `lifeExp` per `year`",
    }),
    (worlds.VOYAGES, {
        "number of passengers per port": "number of rows per `port`",
        "how many passengers are older than 60": "number of rows where `age` is more than 60",
        "how many passengers aged above 60": "number of rows where `age` is more than 60",
        "do females pay more": "mean of `fare` per `sex`",
        "percentage of females survived": (
            "among rows where `sex` is female, share of rows in percent where `survived` is yes"
        ),
        "5 oldest passengers by fare": "`name` and `fare` of top 5 rows by `fare`",
        "number of rows where not (sex is male and survived is yes)": (
            "number of rows where not (`sex` is male and `survived` is yes)"
        ),
        "number of rows where sex is not male and survived is yes": (
            "number of rows where `sex` is not male and `survived` is yes"
        ),
        "number of rows where neither sex is male nor survived is yes": (
            "number of rows where not (`sex` is male or `survived` is yes)"
        ),
        "share of rows where survived is yes among rows where sex is female": (
            "among rows where `sex` is female, share of rows in percent where `survived` is yes"
        ),
        "youngest female passenger's fare": (
            "`name`, `fare` and `age` of row with the smallest `age` where `sex` is female"
        ),
    }),
    (worlds.DEPARTURES, {
        "how many flights went to BOS": "number of rows where `dest` is BOS",
        "how many flights were there each month": "number of rows per `month`",
        "which month has the most flights": "`month` with the largest number of rows",
    }),
    (worlds.DEATHS, {
        "number of rows where state is not OH and not KNOX": (
            "number of rows where `state` is not OH and `county` is not KNOX"
        ),
        "mean percent without Ohio (OH)": "mean of `percent` where `state` is not OH",
    }),
    (worlds.STORMS, {
        "how many hurricanes": "number of rows where `status` is hurricane",
        "which year had the most hurricanes": (
            "`year` with the largest number of rows where `status` is hurricane"
        ),
        "how many years are there": "number of distinct `year`",
    }),
    (worlds.SHIP, {
        "average price of gas": "mean of `gas`",
        "average gas price of women": "mean of `gas` where `sex` is female",
        "which region has the worst average delay?": "`region` with the largest mean of `delay`",
        "which region has the best average delay?": "`region` with the smallest mean of `delay`",
        "gap between max and min of gas": "range of `gas`",
        "how many rows are taller than 235 m?": "number of rows where `height_m` is more than 235",
    }),
    (worlds.BILLS, {
        "highest tip -> what days are there": "distinct values of `day`",
        "how many women": "number of rows where `sex` is Female",
    }),
    (worlds.WINDS, {
        "which day had the strongest wind": "row with the largest `wind`",
    }),
    (worlds.TALLIES, {
        "how many rows where survived is Yes": "number of rows where `survived` is Yes",
    }),
    (worlds.FILMS, {
        "highest Gross of a movie": "maximum of `Gross`",
        "mean Gross of a film": "mean of `Gross`",
        "which director made the most movies": "`Director` with the largest number of rows",
    }),
    (worlds.ARRESTS, {
        "in which week were most people arrested": (
            "`week` with the largest number of rows where `arrest` is 1"
        ),
        "at which age were most people arrested": (
            "`age` with the largest number of rows where `arrest` is 1"
        ),
    }),
    (worlds.INHABITANTS, {
        "how many people live in Germany in 1995": (
            "sum of `pop` where `land` is Germany and `year` is 1995"
        ),
    }),
    (worlds.ODD, {
        "mean age where topic is '); DROP TABLE x; --": (
            "mean of `age` where `topic` is `\"'); DROP TABLE x; --\"`"
        ),
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("here", "texts", "words"), [(here, *pair) for here, pairs in READ for pair in pairs.items()]
)
def test_a_request_is_read_as_it_was_meant(here: TableProfile, texts: str, words: str) -> None:
    assert said(world(here), *texts.split(" -> ")) == words


def test_columns_of_two_tables_are_joined_on_the_shared_key() -> None:
    assert said(world(*worlds.ALL), "total quantity per city") == (
        "sum of `quantity` per `city` in `purchases.csv` and `clients.csv`"
    )
