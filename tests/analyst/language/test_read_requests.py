"""Requests and the readings they have."""

from __future__ import annotations

import pytest
from reading_worlds import ALL, CLIENTS, FLIGHTS, NATIONS, ODD, PURCHASES, reading_of, source

from taskweaver.analyst.readings import (
    And,
    Arithmetic,
    Column,
    Comparison,
    Condition,
    Contrast,
    Cumulative,
    During,
    GroupKey,
    Latest,
    Measure,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    PeriodChange,
    Rank,
    Rows,
    Share,
    Summary,
    TableView,
)

MEAN = Measure("mean", Column("dep_delay"))
COUNT = Measure("count")
HERE = source(FLIGHTS)


def is_(name: str, value: object, operator: str = "==") -> Comparison:
    return Comparison(Column(name), operator, value)  # type: ignore[arg-type]


CONDITIONS: dict[str, Condition] = {
    "of Delta": is_("carrier", "Delta"),
    "where carrier is Delta and origin is JFK": And(
        (is_("carrier", "Delta"), is_("origin", "JFK"))
    ),
    "for Delta or United": OneOf("carrier", ("Delta", "United")),
    "of Delta flights from JFK to Los Angeles": And(
        (is_("carrier", "Delta"), is_("origin", "JFK"), is_("destination", "Los Angeles"))
    ),
    "of Japanese flights": is_("destination", "Japan"),
    "except Delta": is_("carrier", "Delta", "!="),
    "for all carriers except Delta and United": Not(OneOf("carrier", ("Delta", "United"))),
    "neither from JFK nor from LGA": Not(OneOf("origin", ("JFK", "LGA"))),
    "of flights that do not start at JFK": is_("origin", "JFK", "!="),
    "of Delta but not from JFK": And((is_("carrier", "Delta"), is_("origin", "JFK", "!="))),
    "where distance is between 100 and 200": And(
        (is_("distance", 100, ">="), is_("distance", 200, "<="))
    ),
    "with a distance of 50k or more": is_("distance", 50000, ">="),
    "with at most 1,500 distance": is_("distance", 1500, "<="),
    "where the discount is above 20%": is_("discount", 0.2, ">"),
    "where dep_delay exceeds arr_delay": Comparison(Column("dep_delay"), ">", Column("arr_delay")),
    "with distance under 50 or arr_delay over 10": Or(
        (is_("distance", 50, "<"), is_("arr_delay", 10, ">"))
    ),
    "where distance is missing": Missing("distance"),
    "with a known distance": Not(Missing("distance")),
    "in 2023": During("date", "2023-01-01", "2024-01-01"),
    "since June 2023": During("date", "2023-06-01", ""),
    "before May 2023": During("date", "", "2023-05-01"),
    "after 2023-05-04": During("date", "2023-05-05", ""),
    "until March 2023": During("date", "", "2023-04-01"),
    "from March to May 2023": During("date", "2023-03-01", "2023-06-01"),
    "between 1 March 2023 and 15 March 2023": During("date", "2023-03-01", "2023-03-16"),
    "in January and February 2023": During("date", "2023-01-01", "2023-03-01"),
    "in Q3 2023": During("date", "2023-07-01", "2023-10-01"),
    "in the first half of 2023": During("date", "2023-01-01", "2023-07-01"),
    "in summer 2023": During("date", "2023-06-01", "2023-09-01"),
    "in 2023 or later": During("date", "2023-01-01", ""),
    "in January": OnCalendar("date", "month", (1,)),
    "on weekends": OnCalendar("date", "weekday", (5, 6)),
    "in the last 3 months": Latest("date", 3, "month"),
}


@pytest.mark.parametrize("words", CONDITIONS)
def test_conditions(words: str) -> None:
    assert reading_of(f"mean dep_delay {words}", FLIGHTS) == Summary(
        HERE, (MEAN,), where=CONDITIONS[words]
    )


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("in 2007", is_("year", 2007)),
        ("before 2000", is_("year", 2000, "<")),
        ("since 2000", is_("year", 2000, ">=")),
        ("from 1995 to 2000", And((is_("year", 1995, ">="), is_("year", 2000, "<=")))),
        ("in the last 5 years", Latest("year", 5, "year")),
        ("of African countries", is_("continent", "Africa")),
    ],
)
def test_integer_years_are_times(words: str, where: Condition) -> None:
    measure = Measure("mean", Column("lifeExp"))
    assert reading_of(f"mean lifeExp {words}", NATIONS) == Summary(
        source(NATIONS), (measure,), where=where
    )


_DISTANCE = Measure("sum", Column("distance"))
_SPEED = Arithmetic("/", Column("distance"), Column("arr_delay"))
SUMMARIES: dict[str, Summary] = {
    "how many flights are there?": Summary(HERE, (COUNT,)),
    "number of different carriers": Summary(HERE, (Measure("nunique", Column("carrier")),)),
    "how many carriers are there": Summary(HERE, (Measure("nunique", Column("carrier")),)),
    "mean and median of distance": Summary(
        HERE, (Measure("mean", Column("distance")), Measure("median", Column("distance")))
    ),
    "average departure delay per carrier and origin": Summary(
        HERE, (MEAN,), (GroupKey("carrier"), GroupKey("origin"))
    ),
    "total distance per month": Summary(HERE, (_DISTANCE,), (GroupKey("date", unit="month"),)),
    "total distance by weekday": Summary(HERE, (_DISTANCE,), (GroupKey("date", part="weekday"),)),
    "mean dep_delay of Delta and United": Summary(
        HERE, (MEAN,), (GroupKey("carrier"),), OneOf("carrier", ("Delta", "United"))
    ),
    "mean dep_delay of Delta and United combined": Summary(
        HERE, (MEAN,), where=OneOf("carrier", ("Delta", "United"))
    ),
    "90th percentile of distance": Summary(
        HERE, (Measure("percentile", Column("distance"), 0.9),)
    ),
    "second largest distance": Summary(HERE, (Measure("nth", Column("distance"), n=2),)),
    "correlation between distance and dep_delay": Summary(
        HERE, (Measure("correlation", Column("distance"), other=Column("dep_delay")),)
    ),
    "mean of distance / arr_delay": Summary(HERE, (Measure("mean", _SPEED),)),
    "mean ratio of distance to arr_delay": Summary(HERE, (Measure("mean", _SPEED),)),
    "which carrier has the highest mean distance?": Summary(
        HERE, (Measure("mean", Column("distance")),), (GroupKey("carrier"),),
        rank=Rank(count=1), names_winner=True,
    ),
    "which origin has the fewest flights": Summary(
        HERE, (COUNT,), (GroupKey("origin"),), rank=Rank(ascending=True, count=1), names_winner=True
    ),
    "top 2 carriers by total distance": Summary(
        HERE, (_DISTANCE,), (GroupKey("carrier"),), rank=Rank(count=2)
    ),
    "carrier with the second highest mean dep_delay": Summary(
        HERE, (MEAN,), (GroupKey("carrier"),), rank=Rank(nth=2), names_winner=True
    ),
    "what percentage of flights are from JFK?": Summary(
        HERE, (COUNT,), then=Share(is_("origin", "JFK"))
    ),
    "share of flights per origin": Summary(HERE, (COUNT,), (GroupKey("origin"),), then=Share()),
    "difference in mean dep_delay between Delta and United": Summary(
        HERE, (MEAN,), then=Contrast(is_("carrier", "Delta"), is_("carrier", "United"))
    ),
    "year over year growth of total distance": Summary(
        HERE, (_DISTANCE,), (GroupKey("date", unit="year"),), then=PeriodChange(is_relative=True)
    ),
    "cumulative distance per month": Summary(
        HERE, (_DISTANCE,), (GroupKey("date", unit="month"),), then=Cumulative()
    ),
    "bar chart of mean dep_delay by carrier": Summary(
        HERE, (MEAN,), (GroupKey("carrier"),), chart="bar"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", SUMMARIES)
def test_summaries(text: str) -> None:
    assert reading_of(text, FLIGHTS) == SUMMARIES[text]


OTHERS: dict[str, Rows | TableView] = {
    "first 3 rows": Rows(HERE, rank=Rank(count=3)),
    "last 2 rows": Rows(HERE, rank=Rank(count=2), from_end=True),
    "show the 3 largest flights by distance times dep_delay": Rows(
        HERE, by=Arithmetic("*", Column("distance"), Column("dep_delay")), rank=Rank(count=3)
    ),
    "biggest month over month drop of the mean Delta distance": Summary(
        HERE, (Measure("mean", Column("distance")),), (GroupKey("date", unit="month"),),
        is_("carrier", "Delta"), PeriodChange(), Rank(ascending=True, count=1), names_winner=True,
    ),
    "the top distance": Summary(HERE, (Measure("max", Column("distance")),)),
    "mean dep_delay per month as a line": Summary(
        HERE, (MEAN,), (GroupKey("date", unit="month"),), chart="line"
    ),
    "flights with a distance over 500": Rows(HERE, where=is_("distance", 500, ">")),
    "arr_delay of Delta flights": Rows(HERE, ("arr_delay",), is_("carrier", "Delta")),
    "histogram of distance": Rows(HERE, ("distance",), chart="histogram"),
    "scatter plot of distance against dep_delay": Rows(
        HERE, ("dep_delay", "distance"), chart="scatter"
    ),
    "box plot of distance per carrier": Rows(
        HERE, ("distance",), chart="box", split="carrier"
    ),
    "plot distance over time": Rows(
        HERE, ("date", "distance"), by=Column("date"), rank=Rank(ascending=True), chart="line"
    ),
    "which columns are there": TableView(HERE, "columns"),
    "summary statistics": TableView(HERE, "describe"),
    "unique destinations": TableView(HERE, "values", ("destination",)),
    "which carriers fly from JFK": TableView(HERE, "values", ("carrier",), is_("origin", "JFK")),
    "missing values per column": TableView(HERE, "missing"),
    "how many columns are there": TableView(HERE, "shape"),
}  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_rows_and_views(text: str) -> None:
    assert reading_of(text, FLIGHTS) == OTHERS[text]


def test_code_among_the_values_is_a_value() -> None:
    text = "mean age where topic is '); DROP TABLE x; --"
    assert reading_of(text, ODD) == Summary(
        source(ODD), (Measure("mean", Column("age")),), where=is_("topic", "'); DROP TABLE x; --")
    )


def test_columns_of_two_tables_are_joined_on_the_shared_key() -> None:
    assert reading_of("total quantity per city", *ALL) == Summary(
        source(PURCHASES, CLIENTS, on="client_id"),
        (Measure("sum", Column("quantity")),),
        (GroupKey("city"),),
    )
