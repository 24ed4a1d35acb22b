"""Answers: the reading and its rows first, then the result, once."""

from __future__ import annotations

import pytest
from rendered_cells import SALES, run

from taskweaver.analyst.readings import (
    And,
    Calculation,
    Column,
    Comparison,
    Contrast,
    FileListing,
    GroupKey,
    Measure,
    Missing,
    Python,
    Rank,
    Reading,
    Summary,
    TableSource,
    TableView,
    Understood,
)
from taskweaver.analyst.wording.answers import answer, number
from taskweaver.tables.files.profile import TableId

SOURCE = TableSource((TableId("sales.csv"),))
AMOUNT = Column("amount")
NORTH = Comparison(Column("region"), "==", "North")
SOUTH = Comparison(Column("region"), "==", "South")
WEST = Comparison(Column("region"), "==", "West")
MEAN, ROWS = Measure("mean", AMOUNT), Measure("count")


@pytest.mark.parametrize(
    ("reading", "lines"),
    [
        (
            Summary(SOURCE, (MEAN,), where=NORTH),
            ["Mean of `amount` where `region` is North (3 rows)", "**23.33333**"],
        ),
        (
            Summary(SOURCE, (MEAN,), where=SOUTH),
            [
                "Mean of `amount` where `region` is South (2 rows, 1 without `amount`)",
                "**20**",
            ],
        ),
        (Summary(SOURCE, (MEAN,), where=WEST), ["There are no rows where `region` is West."]),
        (
            Summary(SOURCE, (MEAN,), (GroupKey("product"),), where=WEST, chart="bar"),
            ["There are no rows where `region` is West."],
        ),
        (
            Summary(SOURCE, (MEAN,), where=And((SOUTH, Missing("amount")))),
            [
                "Mean of `amount` where `region` is South and `amount` is missing"
                " (1 row, 1 without `amount`)",
                "There is no value to compute it from.",
            ],
        ),
        (
            Summary(SOURCE, (MEAN,), then=Contrast(NORTH, SOUTH)),
            [
                "Difference of the mean of `amount` between `region` is North and `region` is South"
                " (3 and 2 rows, 1 without `amount`)",
                "**3.333333** (23.33333 minus 20)",
            ],
        ),
        (
            Summary(SOURCE, (ROWS,), (GroupKey("region"),), names_winner=True),
            ["`region` with the largest number of rows (8 rows, 1 without `region`)",
             "**North**, with 3"],
        ),
        (
            Summary(SOURCE, (ROWS,), (GroupKey("region"),), rank=Rank(True, 1), names_winner=True),
            ["`region` with the smallest number of rows (8 rows, 1 without `region`)",
             "**East** and **South**, each with 2"],
        ),
        (
            TableView(SOURCE, "shape"),
            ["Number of rows and columns of `sales.csv`", "**8 rows, 7 columns**"],
        ),
        (
            TableView(SOURCE, "outliers", ("count",)),
            ["There are no outliers of `count`."],
        ),
    ],
)  # fmt: skip
def test_an_answer_in_lines(reading: Reading, lines: list[str]) -> None:
    assert run(reading).answer.split("\n\n") == lines


def test_a_count_beside_a_mean_stays_whole() -> None:
    text = run(Summary(SOURCE, (ROWS, MEAN))).answer
    assert [line.split()[-1] for line in text.splitlines()[3:6]] == ["value", "8", "27.857143"]


def test_notes_follow_the_result() -> None:
    understood = Understood(
        Summary(SOURCE, (MEAN,)), unused=("victims", "a`b"), notes=("`class` is the column.",)
    )
    text = answer(
        understood,
        "sales.csv: 5 rows x 2 columns, semicolon\nDates: day first\nrows used: 12345\n",
        "98765.4321",
        ["mean.png"],
    )
    assert text.split("\n\n") == [
        "Mean of `amount` (12,345 rows)",
        "**98,765.43**",
        "Saved: `mean.png`",
        'I did not use: victims, "a\'b".',
        "`class` is the column.",
        "Dates: day first",
    ]


def test_the_result_of_code_is_shown_as_it_is() -> None:
    text = answer(Understood(Python("x")), "rows used: 3\n", "[1, 2]")
    assert "rows used: 3" in text
    assert "[1, 2]" in text
    assert answer(Understood(Python("x = 1")), "", "") == "The code ran."
    assert answer(Understood(Calculation("17 * 23")), "", "391") == "17 * 23\n\n**391**"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("73.44441666666667", "73.44442"), ("3000", "3000"), ("28556", "28,556"),
        ("28556.0", "28,556"), ("-1234567.891", "-1,234,567.89"), ("0.00012345678", "0.0001234568"),
        ("1e-9", "1e-09"), ("0.0", "0"), ("nan", ""), ("inf", "inf"), ("np.float64(1.5)", "1.5"),
        ("Timestamp('2024-01-02 00:00:00')", "2024-01-02"), ("2024-01-02 03:04", None),
        ("2024-01-02 03:04:05", "2024-01-02 03:04:05"),
        ("100000000000000000000000", "100,000,000,000,000,000,000,000"), ("9e400", "inf"),
        ("North", None), ("1 2", None), ("", None),
    ],
)  # fmt: skip
def test_numbers_keep_their_digits(text: str, shown: str | None) -> None:
    assert number(text) == shown


def test_names_in_answers_are_inert() -> None:
    frame = SALES.rename(columns={"region": "<b>`x`"}).assign(**{"<b>`x`": "![](http://x/a.png)"})
    reading = Summary(SOURCE, (ROWS,), (GroupKey("<b>`x`"),), names_winner=True)
    text = run(reading, {"sales.csv": frame}).answer
    assert text.endswith("`![](http://x/a.png)`, with 8")  # a span of code
    assert text.startswith("`<b>'x'` with the largest number of rows")


def test_a_list_of_files_is_counted() -> None:
    assert answer(Understood(FileListing()), "", "['a.csv', 'b.csv']").endswith(
        "**2 files**: `a.csv`, `b.csv`"
    )
