"""First questions of files, without a kernel or a model."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from taskweaver.app import first_questions as module
from taskweaver.app.first_questions import first_questions

ROWS = "day,city,price\n2024-01-01,Rome,1.5\n2024-02-01,Rome,2.5\n2024-03-01,Oslo,10\n"


def test_files_have_tables_and_questions(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(ROWS)
    (outline,) = first_questions([tmp_path / "shop.csv"])
    (table,) = outline.tables
    assert (table.rows, [(c.name, c.kind) for c in table.columns]) == (
        3, [("day", "time"), ("city", "text"), ("price", "number")]
    )  # fmt: skip
    assert [(one.text, one.shows) for one in outline.questions] == [
        ("What is the mean price per city?", "table"),
        ("Plot the mean price per month", "line chart"),
        ("How many rows are there per city?", "table"),
    ]


def test_questions_name_the_file_among_several_and_the_sheet(tmp_path: Path) -> None:
    (tmp_path / "old shop.csv").write_text(ROWS)
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        for sheet in ("North", "South"):
            frame = pd.DataFrame({"kind": ["a", "b", "a"], "price": [1.5, 2, 3]})
            frame.to_excel(book, sheet_name=sheet, index=False)
    shop, sheets = first_questions([tmp_path / "old shop.csv", tmp_path / "book.xlsx"])
    assert shop.questions[0].text == "What is the mean price per city in `old shop.csv`?"
    assert [table.id.part for table in sheets.tables] == ["North", "South"]
    assert "table North" in sheets.questions[0].text
    assert "book.xlsx" in sheets.questions[0].text


def test_odd_files_have_no_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {"empty.csv": "", "note.md": "a", "head.csv": "a,b\n", "bad.parquet": "no"}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    found = first_questions([*(tmp_path / name for name in contents), tmp_path / "gone.csv"])
    assert [bool(one.problem) for one in found] == [True, False, False, True, True]
    assert [len(one.tables) for one in found] == [0, 0, 1, 0, 0]
    monkeypatch.setattr(module, "MOST_BYTES", 2)
    (large,) = first_questions([tmp_path / "head.csv"])
    assert (large.bytes, large.tables) == (4, ())


def test_a_large_text_is_judged_by_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WHOLE_BYTES", 1_000)
    monkeypatch.setattr(module, "_BEGINNING_BYTES", 500)
    (tmp_path / "long.csv").write_text("n,kind\n" + "10,a\n11,b\n" * 500)
    (outline,) = first_questions([tmp_path / "long.csv"])
    assert outline.is_estimate
    assert outline.tables[0].rows == pytest.approx(1_000, rel=0.05)


def test_a_file_of_many_columns_is_not_profiled(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{n}" for n in range(400)) + "\n" + ",".join("1" * 400), "utf-8")
    (outline,) = first_questions([wide])
    assert (outline.tables, outline.problem) == ((), "")
