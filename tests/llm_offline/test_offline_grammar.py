"""What the offline analyst understands: words in, request out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.llm.offline.columns import candidates, mark
from taskweaver.llm.offline.conditions import Filter
from taskweaver.llm.offline.grammar import Request, parse
from taskweaver.llm.offline.wording import task

COLUMNS = ("Date", "Region", "Product", "Category", "Count", "Price", "unit_cost", "Order Value")

PHRASES = [
    (
        "what is the mean of the Count column per month in sales.csv, and plot it",
        {
            "kind": "aggregate",
            "functions": ("mean",),
            "columns": ("Count",),
            "period": "M",
            "chart": "any",
        },
    ),
    (
        "average price by region in sales.csv",
        {"kind": "aggregate", "functions": ("mean",), "columns": ("Price",), "by": ("Region",)},
    ),
    (
        "total count per region and product",
        {"functions": ("sum",), "columns": ("Count",), "by": ("Region", "Product")},
    ),
    (
        "sum of Price for each category",
        {"functions": ("sum",), "columns": ("Price",), "by": ("Category",)},
    ),
    (
        "what's the median unit cost?",
        {"kind": "aggregate", "functions": ("median",), "columns": ("unit_cost",)},
    ),
    ("maximum order value", {"functions": ("max",), "columns": ("Order Value",)}),
    ("highest price", {"kind": "aggregate", "functions": ("max",), "columns": ("Price",)}),
    ("min and max of Price", {"functions": ("min", "max"), "columns": ("Price",)}),
    ("mean and median of the price per year", {"functions": ("mean", "median"), "period": "Y"}),
    ("standard deviation of Price by Region", {"functions": ("std",), "by": ("Region",)}),
    ("monthly sum of Count", {"functions": ("sum",), "columns": ("Count",), "period": "M"}),
    ("weekly average Price", {"functions": ("mean",), "period": "W"}),
    ("sum of Count per quarter", {"functions": ("sum",), "period": "Q"}),
    ("daily total Count", {"functions": ("sum",), "period": "D"}),
    (
        "Compute the mean of `Count` per month of `Date` by `Region` in `sales.csv`.",
        {
            "functions": ("mean",),
            "columns": ("Count",),
            "period": "M",
            "by": ("Date", "Region"),
            "file": "sales.csv",
        },
    ),
    ("count the rows by region", {"kind": "aggregate", "functions": ("count",), "by": ("Region",)}),
    ("how many rows are in sales.csv?", {"kind": "rows", "file": "sales.csv"}),
    (
        "how many rows have Count > 10",
        {"kind": "filter", "functions": ("count",), "filters": (Filter("Count", ">", "10"),)},
    ),
    ("describe sales.csv", {"kind": "describe", "file": "sales.csv"}),
    ("give me summary statistics of the data", {"kind": "describe"}),
    ("which columns are in sales.csv", {"kind": "columns"}),
    ("load sales.csv", {"kind": "columns"}),
    ("Load `sales.csv` and show its columns.", {"kind": "columns", "file": "sales.csv"}),
    ("show the first 10 rows of sales.csv", {"kind": "head", "n": 10}),
    ("head of sales.csv", {"kind": "head"}),
    ("the last 3 rows", {"kind": "tail", "n": 3}),
    ("a sample of 4 rows", {"kind": "sample", "n": 4}),
    ("show sales.csv", {"kind": "head"}),
    ("missing values in sales.csv", {"kind": "missing"}),
    ("are there any nulls?", {"kind": "missing"}),
    ("distinct products", {"kind": "distinct", "columns": ("Product",)}),
    ("what are the unique values of Region", {"kind": "distinct", "columns": ("Region",)}),
    (
        "top 5 products by total price",
        {"kind": "top", "n": 5, "columns": ("Product", "Price"), "functions": ("sum",)},
    ),
    (
        "bottom 3 regions by mean count",
        {
            "kind": "top",
            "n": 3,
            "is_ascending": True,
            "columns": ("Region", "Count"),
            "functions": ("mean",),
        },
    ),
    ("top 10 rows by Price", {"kind": "top", "n": 10, "columns": ("Price",)}),
    ("the 7 largest prices", {"kind": "aggregate"}),
    ("sort by price descending", {"kind": "top", "columns": ("Price",), "is_ascending": False}),
    (
        "rows where Region is North",
        {"kind": "filter", "filters": (Filter("Region", "==", "'North'"),)},
    ),
    (
        "show rows with price over 50 and region is 'East'",
        {
            "kind": "filter",
            "filters": (Filter("Price", ">", "50"), Filter("Region", "==", "'East'")),
        },
    ),
    ("rows where Price is at least 1,000", {"filters": (Filter("Price", ">=", "1000"),)}),
    (
        "rows where Count between 3 and 5",
        {"filters": (Filter("Count", ">=", "3"), Filter("Count", "<=", "5"))},
    ),
    ("rows where Region is not East", {"filters": (Filter("Region", "!=", "'East'"),)}),
    ("mean Price by Region in 2024", {"filters": (Filter("", "year", "2024"),), "by": ("Region",)}),
    (
        "mean of Count per month where Region == North",
        {"period": "M", "filters": (Filter("Region", "==", "'North'"),)},
    ),
    ("correlation of price and count", {"kind": "correlate", "columns": ("Price", "Count")}),
    ("correlate all columns", {"kind": "correlate", "columns": ()}),
    ("histogram of price", {"kind": "plot", "chart": "hist", "columns": ("Price",)}),
    (
        "scatter plot of Price and Count",
        {"kind": "plot", "chart": "scatter", "columns": ("Price", "Count")},
    ),
    ("box plot of Price", {"kind": "plot", "chart": "box"}),
    ("bar chart of Region", {"kind": "plot", "chart": "bar", "columns": ("Region",)}),
    ("pie chart of Category", {"kind": "plot", "chart": "pie"}),
    ("plot Count over time", {"kind": "plot", "chart": "line", "columns": ("Count",)}),
    ("draw the sum of Count per month", {"kind": "aggregate", "chart": "any", "period": "M"}),
    ("outliers in Price", {"kind": "outliers", "columns": ("Price",)}),
    ("find anomalies in the price column", {"kind": "outliers", "columns": ("Price",)}),
    (
        "run this SQL on shop.db: SELECT count(*) FROM orders",
        {"kind": "sql", "file": "shop.db", "text": "SELECT count(*) FROM orders"},
    ),
    ("run this code: print(1)", {"kind": "code", "text": "print(1)"}),
    (
        "Run this code:\n```python\nimport sqlite3, random; x = 1\n```",
        {"kind": "code", "text": "import sqlite3, random; x = 1"},
    ),
    ("execute:\n```python\nx = 1\nx\n```", {"kind": "code", "text": "x = 1\nx"}),
    ("what is 17*23?", {"kind": "arithmetic", "text": "17*23"}),
    ("2^10", {"kind": "arithmetic", "text": "2**10"}),
    ("list the files", {"kind": "files"}),
    ("hello", {"kind": "help"}),
    ("what can you do?", {"kind": "help"}),
    ("write me a poem about the sea", {"kind": "unknown"}),
    ("mean of Profit per month", {"kind": "aggregate", "unknown": ("Profit",)}),
    ("mean Price by Shop", {"unknown": ("Shop",)}),
    ("files added: a b.csv, c.db.\ndescribe it", {"kind": "describe", "file": "a b.csv"}),
    ('describe "my sales.csv"', {"file": "my sales.csv"}),
]


@pytest.mark.parametrize(("words", "expected"), PHRASES, ids=[words[:50] for words, _ in PHRASES])
def test_a_phrase_means(words: str, expected: dict[str, object]) -> None:
    request = parse(words, COLUMNS)
    assert {name: getattr(request, name) for name in expected} == expected


@pytest.mark.parametrize(
    "request_",
    [
        Request("aggregate", "s.csv", ("Count",), ("mean",), ("Date",), "M", chart="line"),
        Request("aggregate", "s.csv", ("Order Value", "Price"), ("sum",), ("Region", "Product")),
        Request("aggregate", "s.csv", (), ("count",), ("Region",)),
        Request("aggregate", "shop.db#orders", ("Price",), ("min", "max")),
        Request(
            "aggregate", "s.csv", ("Price",), ("std",), filters=(Filter("Region", "==", "'North'"),)
        ),
        Request(
            "aggregate", "s.csv", ("Price",), ("mean",), filters=(Filter("Date", "year", "2024"),)
        ),
        Request("top", "s.csv", ("Product", "Price"), ("sum",), n=3, is_ascending=True),
        Request("top", "s.csv", ("Price",), n=7),
        Request(
            "filter", "s.csv", filters=(Filter("Count", ">", "3"), Filter("Price", "<=", "4.5"))
        ),
        Request("filter", "s.csv", functions=("count",), filters=(Filter("Count", ">", "3"),)),
        Request("distinct", "s.csv", ("Region",)),
        Request("correlate", "s.csv", ("Price", "Count"), chart="scatter"),
        Request("correlate", "s.csv"),
        Request("outliers", "s.csv", ("Price",)),
        Request("plot", "s.csv", ("Price",), chart="hist"),
        Request("plot", "s.csv", ("Count",), (), ("Date",), "M", chart="line"),
        Request("describe", "s.csv"),
        Request("columns", "s.csv"),
        Request("rows", "s.csv", functions=("count",)),
        Request("missing", "s.csv"),
        Request("head", "s.csv", n=8),
        Request("files"),
        Request("sql", "shop.db", text="SELECT 1 FROM t"),
        Request("code", text="a = 1\na"),
        Request("arithmetic", text="1 + 1"),
    ],
    ids=lambda request: f"{request.kind} {request.functions} {request.chart}",
)
def test_a_task_is_read_back_as_the_request_it_words(request_: Request) -> None:
    read = parse(task(request_))
    compared = ("kind", "file", "columns", "by", "period", "filters", "is_ascending", "chart")
    assert {name: getattr(read, name) for name in compared} == {
        name: getattr(request_, name) for name in compared
    }
    if request_.kind in {"aggregate", "top", "filter"}:
        assert read.functions == request_.functions
    if request_.n:
        assert read.n == request_.n


names = st.lists(
    st.from_regex(r"[A-Za-z][A-Za-z]{3,10}( [A-Z][a-z]{2,8})?", fullmatch=True),
    min_size=1,
    max_size=6,
    unique_by=str.lower,
)


@given(names, st.data())
def test_a_column_named_in_back_quotes_is_always_found(
    columns: list[str], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(columns))
    assert name in mark(f"the mean of `{name}` please", columns).names


@given(st.text(), st.lists(st.text(min_size=1), max_size=5))
def test_any_text_and_any_columns_are_read_without_error(words: str, columns: list[str]) -> None:
    request = parse(words, tuple(columns))
    assert set(request.columns) <= set(columns) or not columns


def test_candidates_are_parts_of_names_then_near_spellings() -> None:
    columns = ["Order Date", "ship_date", "Price", "Region"]
    assert candidates("date", columns) == ["Order Date", "ship_date"]
    assert candidates("prices", columns) == ["Price"]
    assert candidates("Regoin", columns) == ["Region"]
    assert candidates("profit", columns) == []
