"""Spellings of a value that differ in case, blanks or the form of accents are one value."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from taskweaver import TaskWeaver
from taskweaver.tables.profiles.profiling import impressions, spellings_of

BARE = {"execution.sandbox": "none", "execution.zygote": False, "llm.api_type": "offline"}
STATUS = (
    ["shipped"] * 53 + ["Shipped"] * 52 + ["SHIPPED "] * 53 + ["open"] * 5 + ["Open"] * 2
    + ["in transit"] * 2 + ["in  Transit"] + ["in\u00a0transit"]
    + ["pr\u00eat"] * 2 + ["pre\u0302t"] + ["late"] * 4
)  # fmt: skip


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("orders")
    frame = pd.DataFrame({"status": STATUS, "weight": range(len(STATUS))})
    frame["town"] = [f"Town {at // 4}{'' if at % 2 else ' '}".upper() for at in frame.index]
    frame.to_csv(folder / "orders.csv", index=False)
    return folder / "orders.csv"


@pytest.mark.parametrize(
    ("question", "answer", "named"),
    [
        ("how many orders were shipped?", ["**158**"], '`"Shipped"`'),
        ("how many are not shipped?", ["**18**"], '`"Shipped"`'),
        ("how many are prêt?", ["**3**"], "prêt"),
        ("sum of weight where status is open and weight > 160", ["**650**"], '`"Open"`'),
        ("number of rows per status", ["in transit 4", "open 7", "prêt 3"], '`"Open"`'),
        ("how many are in town 3?", ["**4**"], ""),
    ],
)
def test_spellings_are_counted(orders: Path, question: str, answer: list[str], named: str) -> None:
    with TaskWeaver(config=BARE) as tw:
        told = tw.ask(question, files=orders).text
    plain = " ".join(told.split())
    assert all(part in plain for part in answer), told
    assert named in told


def test_spellings_of_values_that_are_not_asked_about_are_not_named(orders: Path) -> None:
    with TaskWeaver(config=BARE) as tw:
        told = tw.ask("how many are late?", files=orders).text
    assert "**4**" in told
    assert "Spellings" not in told


@pytest.mark.parametrize(
    ("values", "merged"),
    [
        (["Bob Ray", "bob ray", "Ann"], {"bob ray": "Bob Ray"}), (["aB1", "Ab1", "x9"], {}),
        (["A1b", "a1b", "x9"], {}), (["q2hF", "q2HF"] * 9, {}), (["key", "key "], {"key ": "key"}),
        (["iPhone", "iphone", "IPHONE"] * 5, {"iphone": "IPHONE", "iPhone": "IPHONE"}),
        (["Q1", "q1", "Q1 "] * 5, {"Q1 ": "Q1", "q1": "Q1"}),
        (["straße", "STRASSE"] * 5, {"straße": "STRASSE"}), ([" ", "", "a"], {}),
        ([["a"], ["A"]], {}),
        ([f"{case(f'word{at}')}" for at in range(2_000) for case in (str.lower, str.upper)], {}),
    ],
)  # fmt: skip
def test_names_are_merged_and_keys_kept(values: list[object], merged: dict[str, str]) -> None:
    assert spellings_of(pd.Series(values, dtype=object)) == merged


def test_a_model_is_shown_that_there_are_spellings(orders: Path) -> None:
    (table,) = impressions(orders)
    assert "spellings of one value: " in dict(table.columns)["status"]


def test_a_refusal_tells_how_a_doubtful_column_was_read(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("day,n\n2024-01-31,1\n31.01.2024,2\n2024-03-01,4\n")
    with TaskWeaver(config=BARE, trust=True) as tw:
        answer = tw.ask("sum of n per month", files=[tmp_path / "visits.csv"])
    assert not answer.is_answered
    assert "`day` looks like dates of several forms" in answer.text
