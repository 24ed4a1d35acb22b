"""Readings as cells: right by comparison with pandas, short, and harmless whatever is named."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rendered_cells import SALES, SHOPS, run

from taskweaver.analyst.code.cell import as_code
from taskweaver.analyst.code.frames import variable_names
from taskweaver.analyst.readings import (
    And,
    Arithmetic,
    Calculation,
    Column,
    Comparison,
    Condition,
    Constant,
    Contains,
    Contrast,
    Cumulative,
    During,
    Expression,
    FileListing,
    GroupKey,
    Help,
    Latest,
    Measure,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    PeriodChange,
    Python,
    Rank,
    Rows,
    Share,
    Summary,
    TableSource,
    TableView,
)
from taskweaver.tables.files.profile import TableId

ID = TableId("sales.csv")
SOURCE = TableSource((ID,))
JOIN = TableSource((ID, TableId("shops.csv")), (("shop",),))
AMOUNT, COUNT = Column("amount"), Column("count")
REVENUE = Arithmetic("*", AMOUNT, COUNT)
NORTH = Comparison(Column("region"), "==", "North")
SOUTH = Comparison(Column("region"), "==", "South")
AMOUNTS, COUNTS = SALES["amount"], SALES["count"]
DAYS, PRODUCTS = SALES["day"], SALES["product"]
IS_NORTH, IS_SOUTH = SALES["region"] == "North", SALES["region"] == "South"
BY_REGION = (GroupKey("region"),)
PER_MONTH = (GroupKey("day", unit="month"),)


def summary(function: Any = "count", of: Expression | None = None, **options: Any) -> Summary:
    fields = {name: options.pop(name) for name in ("quantile", "n", "other") if name in options}
    return Summary(SOURCE, (Measure(function, of, **fields),), **options)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (Comparison(Column("region"), "!=", "North"), SALES["region"] != "North"),
        (Not(OneOf("region", ("North", "East"))), ~SALES["region"].isin(["North", "East"])),
        (And((NORTH, Comparison(COUNT, ">", 2))), IS_NORTH & (COUNTS > 2)),
        (
            And((Or((NORTH, SOUTH)), Not(Comparison(COUNT, ">=", 5)))),
            (IS_NORTH | IS_SOUTH) & (COUNTS < 5),
        ),
        (Not(Or((NORTH, SOUTH))), ~(IS_NORTH | IS_SOUTH)),
        (Not(Comparison(AMOUNT, ">", 20)), AMOUNTS <= 20),
        (Comparison(AMOUNT, ">", Arithmetic("*", COUNT, Constant(9))), AMOUNTS > COUNTS * 9),
        (Contains("product", "COFF"), PRODUCTS == "coffee"),
        (Missing("amount"), AMOUNTS.isna()),
        (Missing(), SALES.isna().any(axis=1)),
        (Not(Missing()), SALES.notna().all(axis=1)),
        (During("day", "2024-01-01", "2025-01-01"), DAYS.dt.year == 2024),
        (During("day", "2023-02-01", "2024-01-07"), DAYS.between("2023-02-01", "2024-01-06")),
        (During("day", "", "2024-01-07"), DAYS < "2024-01-07"),
        (OnCalendar("day", "weekday", (5, 6)), DAYS.dt.day_of_week >= 5),
        (OnCalendar("day", "quarter", (1, 3)), DAYS.dt.quarter.isin([1, 3])),
        (Latest("day", 3, "month"), pd.Timestamp("2024-06-09") < DAYS),
        (Latest("day", 1, "quarter"), pd.Timestamp("2024-06-09") < DAYS),
        (And((SOUTH, Latest("year", 2, "year"))), IS_SOUTH & (SALES["year"] >= 2022)),
    ],
)
def test_a_condition_chooses_the_rows_that_pandas_chooses(
    condition: Condition, rows: pd.Series[bool]
) -> None:
    found = run(summary(where=condition))
    assert found.value == rows.sum()
    assert f"rows used: {rows.sum()}\n" in found.output
    assert found.names <= {"sales", "result"}


@pytest.mark.parametrize(
    ("reading", "value"),
    [
        (summary("count"), 8),
        (summary("count", AMOUNT), 7),
        (summary("nunique", Column("product")), 3),
        (summary("sum", AMOUNT), 195.0),
        (summary("mean", AMOUNT), AMOUNTS.mean()),
        (summary("median", AMOUNT), AMOUNTS.median()),
        (summary("min", AMOUNT), 5.0),
        (summary("max", Column("day")), pd.Timestamp("2024-09-09")),
        (summary("std", AMOUNT), AMOUNTS.std()),
        (summary("var", AMOUNT), AMOUNTS.var()),
        (summary("range", AMOUNT), 55.0),
        (summary("iqr", AMOUNT), AMOUNTS.quantile(0.75) - AMOUNTS.quantile(0.25)),
        (summary("percentile", AMOUNT, quantile=0.9), AMOUNTS.quantile(0.9)),
        (summary("mode", AMOUNT), "30.0"),
        (summary("mode", Column("region")), "North"),
        (summary("nth", AMOUNT, n=3), 30.0),
        (summary("nth", AMOUNT, n=-2), 10.0),
        (summary("missing", AMOUNT), 1),
        (summary("missing"), 2),
        (summary("correlation", AMOUNT, other=COUNT), AMOUNTS.corr(COUNTS)),
        (summary("sum", REVENUE), (AMOUNTS * COUNTS).sum()),
        (
            summary("mean", Arithmetic("-", AMOUNT, Arithmetic("-", COUNT, Constant(1)))),
            (AMOUNTS - (COUNTS - 1)).mean(),
        ),
        (summary(then=Share(NORTH)), 37.5),
        (summary("sum", COUNT, then=Share(NORTH)), 100 * 12 / 36),
        (summary("mean", AMOUNT, then=Contrast(NORTH, SOUTH)), 70 / 3 - 20),
        (summary("sum", COUNT, then=Contrast(NORTH, SOUTH, is_relative=True)), 100 * (12 - 7) / 7),
        (summary("range", AMOUNT, then=Contrast(NORTH, SOUTH)), 20.0),
    ],
)
def test_a_measure_is_the_value_of_pandas(reading: Summary, value: Any) -> None:
    found = run(reading)
    assert found.value == (pytest.approx(value) if isinstance(value, float) else value)
    assert found.names <= {"sales", "result"}


REGIONS = SALES.groupby("region")
MONTHS = SALES.groupby(DAYS.dt.to_period("M"))


@pytest.mark.parametrize(
    ("reading", "values"),
    [
        (
            summary("range", AMOUNT, keys=BY_REGION),
            REGIONS["amount"].max() - REGIONS["amount"].min(),
        ),
        (
            summary("missing", AMOUNT, keys=BY_REGION),
            REGIONS["amount"].apply(lambda v: v.isna().sum()),
        ),
        (
            summary("percentile", COUNT, keys=BY_REGION, quantile=0.25),
            REGIONS["count"].quantile(0.25),
        ),
        (
            summary("sum", COUNT, keys=(GroupKey("day", part="month"),)),
            SALES.groupby(DAYS.dt.month)["count"].sum(),
        ),
        (
            summary("sum", COUNT, keys=(GroupKey("day", part="weekday"),)),
            SALES.groupby(DAYS.dt.day_name())["count"].sum()[
                ["Monday", "Friday", "Saturday", "Sunday"]
            ],
        ),
        (summary(keys=BY_REGION, then=Share()), 100 * REGIONS.size() / 7),
        (
            summary(
                "sum", COUNT, keys=BY_REGION, then=Share(Comparison(Column("product"), "==", "tea"))
            ),
            100
            * COUNTS.where(PRODUCTS == "tea").groupby(SALES["region"]).sum()
            / REGIONS["count"].sum(),
        ),
        (
            summary("sum", COUNT, keys=PER_MONTH, then=PeriodChange()),
            MONTHS["count"].sum().diff().dropna(),
        ),
        (summary("sum", COUNT, keys=PER_MONTH, then=Cumulative()), MONTHS["count"].sum().cumsum()),
        (
            summary("sum", COUNT, keys=BY_REGION, rank=Rank(count=2)),
            REGIONS["count"].sum().nlargest(2),
        ),
        (
            summary("max", COUNT, keys=BY_REGION, rank=Rank(nth=2)),
            REGIONS["count"].max().nlargest(2).tail(1),
        ),
        (summary("mean", AMOUNT, keys=BY_REGION, where=NORTH), pd.Series({"North": 70 / 3})),
        (
            Summary(SOURCE, (Measure("max", AMOUNT),), (GroupKey("product"),), names_winner=True),
            pd.Series({"tea": 60.0}),
        ),
        (
            Summary(
                SOURCE,
                (Measure("sum", COUNT),),
                (GroupKey("day", unit="month"),),
                then=PeriodChange(),
                rank=Rank(ascending=True, count=1),
            ),
            MONTHS["count"].sum().diff().nsmallest(1),
        ),
        (
            Summary(JOIN, (Measure("sum", Column("year")),), (GroupKey("city"),)),
            SALES.merge(SHOPS[["shop", "city"]], on="shop").groupby("city")["year"].sum(),
        ),
    ],
)
def test_groups_have_the_values_of_pandas(reading: Summary, values: pd.Series[Any]) -> None:
    found = run(reading)
    shown = found.value
    assert list(shown.index) == list(values.index)
    assert shown.shape[1] == 1
    np.testing.assert_allclose(shown.iloc[:, 0].astype(float), values.astype(float))
    assert found.names <= {"sales", "shops", "result"}


def test_two_keys_and_several_measures_have_a_column_each() -> None:
    measures = (Measure("min", AMOUNT), Measure("max", AMOUNT))
    found = run(Summary(SOURCE, measures, (GroupKey("region"), GroupKey("product")))).value
    wanted = SALES.groupby(["region", "product"])["amount"].agg(["min", "max"]).reset_index()
    assert found.columns.tolist() == ["region", "product", "minimum of amount", "maximum of amount"]
    assert found.to_numpy().tolist()[0][:2] == wanted.to_numpy().tolist()[0][:2]
    np.testing.assert_allclose(found.iloc[:, 2:].astype(float), wanted[["min", "max"]])


@pytest.mark.parametrize(
    ("reading", "counts"),
    [
        (Rows(SOURCE, rank=Rank(ascending=True, count=3)), [1, 2, 3]),
        (Rows(SOURCE, rank=Rank(ascending=True, count=2), from_end=True), [7, 8]),
        (Rows(SOURCE, where=NORTH), [1, 3, 8]),
        (Rows(SOURCE, by=AMOUNT, rank=Rank(count=2)), [6, 4]),
        (Rows(SOURCE, by=AMOUNT, rank=Rank(ascending=True, count=1)), [7]),
        (Rows(SOURCE, by=Column("region"), rank=Rank(ascending=True, count=2)), [4, 7]),
        (Rows(SOURCE, by=REVENUE, rank=Rank(count=1)), [6]),
        (Rows(SOURCE, by=AMOUNT, rank=Rank(nth=3)), [3, 8]),
        (Rows(SOURCE, ("count",), by=AMOUNT, rank=Rank(count=1)), [6]),
    ],
)
def test_rows_are_those_of_pandas(reading: Rows, counts: list[int]) -> None:
    assert run(reading).value["count"].tolist() == counts


def test_views_of_a_table() -> None:
    def view(kind: Any, *columns: str) -> Any:
        return run(TableView(SOURCE, kind, columns)).value

    assert view("shape") == (8, 7)
    assert view("missing")["missing"].tolist() == [1, 0, 1, 0, 0, 0, 0]
    assert view("missing", "amount") == 1
    assert view("values", "product")["rows"].to_dict() == {"tea": 4, "coffee": 2, "cocoa": 2}
    assert view("span", "day").iloc[0].tolist() == [DAYS.min(), DAYS.max()]
    assert view("describe", "amount").loc["mean"].item() == AMOUNTS.mean()
    assert view("columns").index.tolist() == SALES.columns.tolist()
    assert len(view("sample")) == 5
    assert view("correlations").loc["amount", "count"] == AMOUNTS.corr(COUNTS)
    outlying = pd.DataFrame({"amount": [1.0, 2, 3, 2, 1, 2, 99]})
    found = run(TableView(SOURCE, "outliers", ("amount",)), {"sales.csv": outlying})
    assert found.value["amount"].tolist() == [99]


def test_variables_are_named_after_files_and_never_shadow_a_name() -> None:
    files = [
        "class.csv", "closing.csv", "list.csv", "result.csv", "pd.csv", "2024 sales.csv",
        "Ünï côde.csv", "--.csv", "a/x.csv", "b/x.csv", "x.tsv",
    ]  # fmt: skip
    ids = [TableId(file) for file in files] + [TableId("budget.xlsx", "Plan")]
    names = variable_names(ids)
    assert len(set(names.values())) == len(ids)
    assert all(name.isidentifier() for name in names.values())
    assert names[TableId("class.csv")] == "class_table"
    assert names[TableId("closing.csv")] == "closing_table"
    assert names[TableId("2024 sales.csv")] == "table_2024_sales"
    assert names[TableId("budget.xlsx", "Plan")] == "budget_plan"
    assert names[TableId("x.tsv")] == "x_tsv"
    assert not set(names.values()) & {"list", "result", "pd", "class"}
    sheet = Summary(TableSource((TableId("budget.xlsx", "Plan"),)), (Measure("count"),))
    assert as_code(sheet, {}).startswith("budget_plan = read_table('budget.xlsx', sheet='Plan')")


def test_other_requests() -> None:
    assert as_code(Python("x = 1"), {}) == "x = 1"
    assert as_code(Calculation("17 * (2 + 3)"), {}) == "17 * (2 + 3)"
    assert as_code(Help(), {}) == ""
    assert "listdir" in as_code(FileListing(), {})
    for text in ("__import__('os')", "x", "1 if 2 else 3", "'a' * 9", "(1).real", "1;2"):
        with pytest.raises(ValueError, match="no arithmetic"):
            as_code(Calculation(text), {})


WIDE = pd.DataFrame(
    {
        "who": ["a", "a", "b", "b"],
        "month": ["Feb", "Jan", "Mar", "Jan"],
        "big": pd.array([2**63 - 1, 1, -(2**63), None], "Int64"),
        "plain": np.array([2**63 - 1, 1, 2, 3]),
        "none": [None, None, 1.5, 2.5],
        "endless": [1.0, float("inf"), 2.0, 3.0],
    }
)
_BIG = Column("big")
_BY_WHO = (GroupKey("who"),)


@pytest.mark.parametrize(
    ("function", "of", "options", "answered"),
    [
        ("sum", Column("plain"), {}, f"{2**63 + 5:,}"),
        ("sum", _BIG, {}, "**0**"),
        ("sum", _BIG, {"where": Comparison(_BIG, ">", 0)}, f"{2**63:,}"),
        ("range", _BIG, {}, f"{2**64 - 1:,}"),
        ("mean", Column("plain"), {}, "2.305843e+18"),
        ("sum", Arithmetic("*", _BIG, Column("plain")), {}, f"{(2**63 - 1) ** 2 + 1 - 2**64:,}"),
        ("sum", _BIG, {"keys": _BY_WHO}, f"{2**63}"),
        ("sum", Column("plain"), {"keys": _BY_WHO, "rank": Rank(count=1)}, "9.223372e+18"),
        ("sum", Column("none"), {"where": Comparison(Column("who"), "==", "a")}, "no value"),
        ("sum", Column("none"), {"keys": _BY_WHO}, "a +NaN.*"),
        ("max", Column("endless"), {}, "**inf** (an infinite value is among them)"),
        ("sum", Column("plain"), {"keys": (GroupKey("month"),)}, "Jan.*Feb.*Mar"),
        ("count", None, {"keys": (GroupKey("who"), GroupKey("month"))}, "Jan.*Feb.*Jan.*Mar"),
    ],
)  # fmt: skip
def test_numbers_neither_wrap_nor_vanish(
    function: Any, of: Expression | None, options: dict[str, Any], answered: str
) -> None:
    ran = run(summary(function, of, **options), {"sales.csv": WIDE})
    assert re.search(answered if ".*" in answered else re.escape(answered), ran.answer, re.DOTALL)
