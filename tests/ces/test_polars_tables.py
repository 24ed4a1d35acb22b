"""Frames of polars as the page of variables shows them."""

from __future__ import annotations

import sys

import pytest

from taskweaver.ces.inkernel.view import view
from taskweaver.ces.inkernel.viewed_tables import ViewProblem, table_of

polars = pytest.importorskip("polars")


def test_objects_are_texts_and_not_addresses() -> None:
    pytest.importorskip("pyarrow")
    frame = polars.DataFrame({"n": [1, 2], "o": polars.Series([{1}, None], dtype=polars.Object)})
    table = table_of(frame)
    assert [table.values(number, [0, 1]) for number in (0, 1)] == [[1, 2], ["{1}", None]]
    assert frame.dtypes[1] == polars.Object, "the user's frame stays as it is"


def test_without_pyarrow_a_frame_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ViewProblem, match="pyarrow"):
        table_of(polars.DataFrame({"n": [1, 2]}))


def test_a_module_of_that_name_hides_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", sys)  # or a folder of data that was imported
    shown = view({"view": "variables"}, {"a": 1}, frozenset())
    assert [one["is_table"] for one in shown["variables"]] == [False]
