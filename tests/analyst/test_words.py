"""Readings in words: one meaning each, and nothing of a name or value that has an effect.

The words of readings that requests have are those of `language/test_read_requests.py`.
"""

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
    During,
    GroupKey,
    Measure,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    Rank,
    Reading,
    Rows,
    Sql,
    Summary,
    TableSource,
)
from taskweaver.analyst.wording.requests import in_words
from taskweaver.tables.files.profile import TableId

SALES = TableSource((TableId("sales.csv"),))
MEAN, ROWS = Measure("mean", Column("amount")), Measure("count")
NORTH = Comparison(Column("region"), "==", "North")
SOUTH = Comparison(Column("region"), "==", "South")


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Summary(SALES, (Measure("nth", Column("a"), n=-2),)), "second smallest value of `a`"),
        (
            Summary(SALES, (MEAN,), (GroupKey("region"),), rank=Rank(ascending=True)),
            "mean of `amount` per `region`, smallest first",
        ),
        (
            Rows(SALES, ("price",), NORTH, by=Column("day"), chart="line"),
            "line chart of `price` over `day` where `region` is North",
        ),
        (Rows(SALES, ("day",), by=Column("a"), rank=Rank(count=3)), "`day` of top 3 rows by `a`"),
        (Sql("shop.db", "select 1"), "result of the SQL query on `shop.db`"),
    ],
)
def test_a_reading_in_words(reading: Reading, words: str) -> None:
    assert in_words(reading) == words


@pytest.mark.parametrize(
    ("condition", "words"),
    [
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
        (
            Comparison(Arithmetic("*", Column("a"), Constant(2.0)), "<=", 0.5),
            "`a` * 2 is at most 0.5",
        ),
        (Contains("name", "new york"), '`name` contains "new york"'),
        (During("day", "2014-03-01", "2014-04-01"), "`day` is in March 2014"),
        (During("day", "2014-07-01", "2014-07-02"), "`day` is on 2014-07-01"),
        (OnCalendar("day", "month", (6, 7, 8)), "`day` is in June, July or August"),
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
