"""Tables on their way from a kernel: the same values and types, bounded, hostile ones left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import Script, code_reply, make_project

from taskweaver import TaskWeaver
from taskweaver.ces.common import TABLE_CHARS, CellTable
from taskweaver.ces.inkernel.cell.report import MAX_CELLS, table_text
from taskweaver.face.tables import read_tables

pytestmark = pytest.mark.usefixtures("no_states")

TIMES = pd.to_datetime(["2024-01-31 10:00:00.000001", None, "1999-12-31"], format="ISO8601")
FRAMES = {
    "numbers": pd.DataFrame({"i": [1, 2], "f": [0.1 + 0.2, float("nan")], "b": [True, False]}),
    "extremes": pd.DataFrame({"f": [np.inf, -np.inf, 5e-324], "i": [2**63 - 1, -(2**63), 0]}),
    "small types": pd.DataFrame({"a": np.array([1], "int8"), "b": np.array([2.5], "float32")}),
    "nullable": pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": pd.array([True, None])}),
    "texts": pd.DataFrame({"a": ["x", None, "y\n\x1b[1m'\"\\ü☃"], "b": ["", " ", "nan"]}),
    "times": pd.DataFrame({"a": TIMES, "b": TIMES.tz_localize("Europe/Rome")}),
    "spans": pd.DataFrame({"a": pd.to_timedelta([1.5, None, 10**6], "s")}),
    "periods": pd.DataFrame({"a": pd.period_range("2024-01", periods=2, freq="M")}),
    "categories": pd.DataFrame({"a": pd.Categorical(["b", None], ["b", "a"], ordered=True)}),
    "an index": pd.DataFrame({"a": [1, 2]}, index=pd.Index(["u", "v"], name="who")),
    "years": pd.DataFrame({2020: [1], 2021: [2]}, index=[7]),
    "levels": pd.DataFrame({"a": [1, 2, 3], "k": [*"xxy"], "l": [1, 2, 1]}).set_index(["k", "l"]),
    "pivot": pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_product([["a"], ["x", "y"]])),
    "same names": pd.DataFrame([[1, "z"]], columns=["a", "a"]),
    "no rows": pd.DataFrame({"a": pd.Series([], dtype="float64")}),
    "no columns": pd.DataFrame(index=[3, 4]),
}  # fmt: skip


def carried(value: Any) -> pd.DataFrame:
    ((_, frame),) = read_tables([CellTable("c", table_text(value, TABLE_CHARS))]).frames
    assert isinstance(frame, pd.DataFrame)
    return frame


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_table_arrives_with_its_values_and_types(frame: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(carried(frame), frame, check_exact=True, check_freq=False)


def test_a_series_arrives_as_a_table_of_one_column() -> None:
    assert carried(pd.Series([1], name="n")).to_dict("list") == {"n": [1]}
    assert carried(pd.Series([1])).to_dict("list") == {"value": [1]}


def test_other_values_are_no_tables_and_odd_objects_arrive_as_their_text() -> None:
    class Bad:
        def __str__(self) -> str:
            raise ValueError("no text")

    values: list[Any] = [1, "text", None, [1], np.arange(3), pd.Index([1])]
    for value in [*values, pd.DataFrame({"a": [Bad()]})]:
        assert table_text(value, TABLE_CHARS) == ""
    frame = pd.DataFrame({"a": [{"k": 1}, 2 + 1j, ("x",), b"b"], "c": [1j, 2j, 3j, 4j]})
    found = carried(frame)
    assert found["a"].tolist() == ["{'k': 1}", "(2+1j)", "('x',)", "b'b'"]
    assert found["c"].tolist() == ["1j", "2j", "3j", "4j"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": range(MAX_CELLS + 7)}),
        pd.DataFrame({"a": ["☃" * 5000] * 300}),
        pd.DataFrame({f"c{n}": ["x" * 50] * 4000 for n in range(40)}),
    ],
    ids=["rows", "texts", "both"],
)
def test_a_long_table_has_its_first_rows_and_a_note(frame: pd.DataFrame) -> None:
    read = read_tables([CellTable("c", table_text(frame, TABLE_CHARS))])
    ((_, found),) = read.frames
    assert 0 < len(found) < len(frame)
    pd.testing.assert_frame_equal(found, frame.head(len(found)))
    assert read.notes == (f"Table 1 has the first {len(found):,} of {len(frame):,} rows.",)


GOOD = {
    "rows": 1,
    "index": None,
    "columns": {"names": [None], "levels": [{"dtype": "str", "values": ["a"]}]},
    "data": [{"dtype": "int64", "values": [1]}],
}
HOSTILE: list[Any] = [
    [], {}, 7, None, "x", GOOD | {"data": None}, GOOD | {"data": []}, GOOD | {"columns": {}},
    GOOD | {"data": [{"dtype": "int64", "values": [[1]]}]},
    GOOD | {"data": [{"dtype": "int64", "values": {"0": 1}}]},
    GOOD | {"data": [{"dtype": "int64", "values": [1]}] * 2},
    GOOD | {"data": [{"values": [1]}]},
    GOOD | {"index": {"names": [None], "levels": [{"dtype": "int64", "values": [1, 2]}]}},
    GOOD | {"index": {"names": [], "levels": []}},
    GOOD | {"index": {"names": [[]], "levels": [{"dtype": "int64", "values": [1]}]}},
    GOOD | {"data": [{"dtype": "category", "values": [1], "categories": [1, 1]}]},
]  # fmt: skip


@pytest.mark.parametrize("claim", HOSTILE, ids=str)
def test_a_forged_table_is_left_out(claim: object) -> None:
    read = read_tables([CellTable("c", json.dumps(claim)), CellTable("d", json.dumps(GOOD))])
    assert [exec_id for exec_id, _ in read.frames] == ["d"]


def test_a_text_that_is_no_table_is_left_out_and_a_forged_type_not_looked_up() -> None:
    for text in ("", "{", "[" * 100_000, '{"rows": NaN}', "1" * 5000):
        assert read_tables([CellTable("c", text)]).frames == ()
    for dtype in ("sparse", "os.system", "int99", "datetime64[ns, ../x]", "M8[Y]"):
        claim = GOOD | {"data": [{"dtype": dtype, "values": [1]}]}
        ((_, frame),) = read_tables([CellTable("c", json.dumps(claim))]).frames
        assert len(frame) == 1


def test_the_values_of_cells_are_the_tables_of_an_answer(tmp_path: Path) -> None:
    code = "df = pd.DataFrame({'t': pd.to_datetime(['2024-02-01']), 'n': [0.1 + 0.2]})"
    replies = [code_reply(code), code_reply("df['n'] * 2"), code_reply("len(df)")]
    project = make_project(tmp_path / "project")
    config = {"session.roles": ["code_interpreter"]}
    with TaskWeaver(project, config, model=Script(replies)) as tw:
        (table,) = tw.ask("one").tables
        (doubled,) = tw.ask("two").tables
        assert tw.ask("three").tables == []
    assert table["n"].tolist() == [0.1 + 0.2]
    assert str(table["t"].dtype).startswith("datetime64")
    assert doubled["n"].tolist() == [0.6000000000000001]
