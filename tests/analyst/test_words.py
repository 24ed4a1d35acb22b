"""Readings in words: one meaning each, and nothing of a name or value that has an effect."""

from __future__ import annotations

import pytest

from taskweaver.analyst.readings import (
    And,
    Arithmetic,
    Column,
    Comparison,
    Condition,
    Constant,
    Contains,
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
    Reading,
    Rows,
    Share,
    Sql,
    Summary,
    TableSource,
    TableView,
)
from taskweaver.analyst.wording.requests import in_words
from taskweaver.tables.files.profile import TableId

SALES = TableSource((TableId("sales.csv"),))
JOIN = TableSource((TableId("sales.csv"), TableId("shops.csv")), (("shop",),))
MEAN, ROWS = Measure("mean", Column("amount")), Measure("count")
NORTH = Comparison(Column("region"), "==", "North")
SOUTH = Comparison(Column("region"), "==", "South")


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Summary(JOIN, (MEAN,)), "mean of `amount` in `sales.csv` and `shops.csv`"),
        (
            Summary(SALES, (Measure("min", Column("a")), Measure("max", Column("a")))),
            "minimum and maximum of `a`",
        ),
        (
            Summary(SALES, (Measure("percentile", Column("a"), quantile=0.9),)),
            "90th percentile of `a`",
        ),
        (Summary(SALES, (Measure("nth", Column("a"), n=-2),)), "second smallest value of `a`"),
        (
            Summary(SALES, (Measure("correlation", Column("a"), other=Column("b")),)),
            "correlation of `a` and `b`",
        ),
        (
            Summary(SALES, (MEAN,), (GroupKey("region"),), rank=Rank(ascending=True)),
            "mean of `amount` per `region`, smallest first",
        ),
        (
            Summary(SALES, (MEAN,), (GroupKey("region"),), rank=Rank(nth=2)),
            "`region` with the second largest mean of `amount`",
        ),
        (
            Summary(SALES, (MEAN,), (GroupKey("region"),), names_winner=True, where=NORTH),
            "`region` with the largest mean of `amount` where `region` is North",
        ),
        (
            Summary(SALES, (ROWS,), then=Share(NORTH), where=Missing("day")),
            "among rows where `day` is missing, share of rows in percent where `region` is North",
        ),
        (
            Summary(SALES, (MEAN,), then=Contrast(NORTH, SOUTH)),
            "difference of the mean of `amount` between `region` is North and `region` is South",
        ),
        (
            Summary(
                SALES, (MEAN,), (GroupKey("day", unit="year"),), then=PeriodChange(is_relative=True)
            ),
            "relative change in percent of the mean of `amount` per year of `day`",
        ),
        (
            Summary(SALES, (MEAN,), (GroupKey("day", unit="year"),), then=Cumulative()),
            "cumulative mean of `amount` per year of `day`",
        ),
        (
            Rows(SALES, ("price",), NORTH, by=Column("day"), chart="line"),
            "line chart of `price` over `day` where `region` is North",
        ),
        (
            Rows(SALES, ("a", "b"), chart="scatter"),
            "scatter plot of `b` against `a`",
        ),
        (Rows(SALES, ("day",), by=Column("a"), rank=Rank(count=3)), "`day` of top 3 rows by `a`"),
        (Rows(SALES, by=Column("a"), rank=Rank(count=1)), "row with the largest `a`"),
        (Rows(SALES, rank=Rank(count=3), from_end=True), "last 3 rows"),
        (TableView(SALES, "values", ("region",)), "distinct values of `region`"),
        (TableView(SALES, "shape"), "number of rows and columns of `sales.csv`"),
        (Sql("shop.db", "select 1"), "result of the SQL query on `shop.db`"),
    ],
)
def test_a_reading_in_words(reading: Reading, words: str) -> None:
    assert in_words(reading) == words


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (OneOf("region", ("North", "South")), "`region` is North or South"),
        (Not(OneOf("region", ("North", "South"))), "`region` is neither North nor South"),
        (
            And((OneOf("region", ("North", "South")), Comparison(Column("a"), ">", 5))),
            "(`region` is North or South) and `a` is more than 5",
        ),
        (
            Or((And((NORTH, Missing("a"))), SOUTH)),
            "(`region` is North and `a` is missing) or `region` is South",
        ),
        (
            And((Or((NORTH, SOUTH)), Not(Missing("a")))),
            "(`region` is North or `region` is South) and `a` is not missing",
        ),
        (Not(And((NORTH, SOUTH))), "not (`region` is North and `region` is South)"),
        (
            Comparison(Arithmetic("*", Column("a"), Constant(2.0)), "<=", 0.5),
            "`a` * 2 is at most 0.5",
        ),
        (Not(Comparison(Column("a"), ">", 5)), "`a` is at most 5"),
        (Contains("name", "new york"), '`name` contains "new york"'),
        (During("day", "2014-01-01", "2015-01-01"), "`day` is in 2014"),
        (During("day", "2014-03-01", "2014-04-01"), "`day` is in March 2014"),
        (During("day", "2014-07-01", "2014-10-01"), "`day` is in Q3 2014"),
        (During("day", "2014-07-01", "2014-07-02"), "`day` is on 2014-07-01"),
        (During("day", "2014-03-01"), "`day` is 2014-03-01 or later"),
        (During("day", "", "2014-03-01"), "`day` is before 2014-03-01"),
        (OnCalendar("day", "month", (6, 7, 8)), "`day` is in June, July or August"),
        (OnCalendar("day", "weekday", (5, 6)), "`day` is on a Saturday or Sunday"),
        (Latest("day", 3, "month"), "`day` is in the last 3 months"),
        (Comparison(Column("zip"), "==", "00501"), '`zip` is "00501"'),
        (Comparison(Column("word"), "==", "and"), '`word` is "and"'),
    ],
)
def test_a_condition_in_words(condition: Condition, words: str) -> None:
    assert in_words(Summary(SALES, (ROWS,), where=condition)) == f"number of rows where {words}"


@pytest.mark.parametrize(
    "text",
    [
        "a`b", "a\nb", "**a**", "[a](http://x)", "<b>", "a\x1b[31m", "\u202ea", "North and x is 3",
        'a" or "b', "# a", "$x$", "| a |", "a\u2028b", "", "North, all where `a` is 3",
    ],
)  # fmt: skip
def test_hostile_values_and_names_stay_what_they_are(text: str) -> None:
    of_value = in_words(Summary(SALES, (ROWS,), where=Comparison(Column("a"), "==", text)))
    of_name = in_words(Summary(SALES, (Measure("sum", Column(text)),)))
    assert of_value.startswith("number of rows where `a` is ")
    assert of_name.startswith("sum of `")
    assert of_name.endswith("`")
    for words in (of_value, of_name):
        assert words.isprintable()
        assert words.count("`") % 2 == 0
    value = of_value.removeprefix("number of rows where `a` is ")
    assert value.strip("`")[:1] == '"' == value.strip("`")[-1:]
    assert value.count('"') == 2
    assert of_name.count("`") == 2
    if "\x1b" not in text and set(text) & set("*[<#$|"):
        assert value.startswith("`")
