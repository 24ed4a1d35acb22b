"""The first impression of hostile files, which the kernel reads."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from taskweaver.ces.inkernel import overview


def overview_of(name: str, content: bytes, size: int | None = None) -> dict[str, Any]:
    """Return the overview of a file of which the kernel gets some bytes."""
    encoded = base64.b64encode(content).decode()
    file = {"name": name, "bytes": size or len(content), "content": encoded}
    return overview.overviews({"files": [file]})["files"][name]


def test_columns_are_those_of_the_header_below_a_title_and_rows_are_as_they_are_written() -> None:
    text = "Sales of 2024;;\n;;\nshop;amount;day\nA;1.234,50;03.04.2024\nB;2,5;13.04.2024\n"
    (table,) = overview_of("report.csv", text.encode("utf-16"))["tables"]
    amount, day = "number, 2.5 to 1234.5, thousands separators", "time, 2024-04-03 to 2024-04-13"
    assert table["columns"] == [["shop", "text, A|B"], ["amount", amount], ["day", day]]
    assert table["sample"] == [["A", "1.234,50", "03.04.2024"], ["B", "2,5", "13.04.2024"]]
    assert (table["rows"], table["is_estimate"]) == (2, False)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_rows_of_a_beginning_are_estimated_without_the_line_that_is_cut(encoding: str) -> None:
    text = "name,n\n" + "Zoë,12\n" * 500
    content = text.encode(encoding)
    (table,) = overview_of("names.csv", content[: len(content) // 2 + 1], len(content))["tables"]
    assert table["columns"] == [["name", "text, such as Zoë"], ["n", "integer"]]
    assert table["is_estimate"]
    assert abs(table["rows"] - 500) < 5


def test_a_view_that_computes_for_ever_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pd.DataFrame is not None  # its import takes no time of the limit
    path = tmp_path / "endless.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW endless AS WITH RECURSIVE c(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        )
        connection.commit()
    monkeypatch.setattr(overview, "_LIMIT_S", 0.2)

    found = overview_of(path.name, path.read_bytes())

    assert "tables" not in found
    assert "interrupted" in found["problem"]
