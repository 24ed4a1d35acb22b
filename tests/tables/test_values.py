"""Values are what was written, in every format: they print as their texts, and stay as distinct."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from plain import loaded, written
from sizes import examples

from taskweaver.tables.errors import TableError
from taskweaver.tables.profiles.profiling import impressions
from taskweaver.tables.reading import existing

Columns = dict[str, list[Any]]
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
FLOATS = (
    st.floats(-1e9, 1e9)
    .map(lambda value: float(f"{value:.15g}"))  # workbooks are written with 16 digits
    .map(lambda value: value if value % 1 else value + 0.5)
)
SKUS = ["1E5", "2E3", "100000", "2000", "1.10", "1.1", "2.0", "007", "7", "9" * 25]
ZONES = ["APAC", "EUR", "NA", "K"]


def separated(mark: str) -> Callable[[Columns, Path], None]:
    def write(columns: Columns, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=mark)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    return write


def records(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def nested_lines(columns: Columns, path: Path) -> None:
    rows = [{"in": {"key": row.pop("key")}, **row} for row in records(columns)]
    path.write_text("\n".join(map(json.dumps, rows)))


def workbook(columns: Columns, path: Path) -> None:
    book = Workbook()
    for row in [list(columns), *zip(*columns.values(), strict=True)]:
        book.active.append(list(row))
    book.save(path)


def database(columns: Columns, path: Path) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t ({names})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO t VALUES ({marks})", zip(*columns.values(), strict=True)
        )
        connection.commit()


FORMATS: dict[str, Callable[[Columns, Path], object]] = {
    "csv": separated(","),
    "tsv": separated("\t"),
    "json": lambda columns, path: path.write_text(json.dumps(records(columns))),
    "jsonl": nested_lines,
    "parquet": lambda columns, path: pq.write_table(pa.table(columns), path),
    "xlsx": workbook,
    "db": database,
}


def packed(path: Path, packing: str) -> Path:
    if not packing:
        return path
    place = path.with_name(f"{path.name}.{packing}")
    if packing == "gz":
        place.write_bytes(gzip.compress(path.read_bytes()))
    else:
        with zipfile.ZipFile(place, "w") as archive:
            archive.write(path, path.name)
    return place


def column(values: st.SearchStrategy[Any], rows: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values | st.none(), min_size=rows, max_size=rows)


@st.composite
def tables(draw: st.DrawFn) -> Columns:
    rows = draw(st.integers(3, 12))
    return {
        "key": [f"row {number}" for number in range(rows)],
        "id": draw(column(INTEGERS, rows)),
        "value": draw(column(FLOATS, rows)),
        "sku": draw(column(st.sampled_from(SKUS), rows)),
        "zone": [*draw(column(st.sampled_from(ZONES), rows - 2)), "APAC", "EUR"],
        "few": draw(column(st.integers(0, 3), rows)),
    }


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of code that is exported
@settings(max_examples=examples(150), deadline=None)
@given(tables(), st.sampled_from(sorted(FORMATS)), st.sampled_from(["", "gz", "zip"]))
def test_values_print_as_they_were_written(columns: Columns, form: str, packing: str) -> None:
    if form == "xlsx":  # it holds 16 digits of a number
        columns["id"] = [value and value % 10**15 for value in columns["id"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t.{form}")
        FORMATS[form](columns, path)
        frame = loaded(packed(path, packing)).frame
    for name, values in columns.items():
        series = frame["in.key" if name == "key" and form == "jsonl" else name]
        texts = [None if value is None else str(value) for value in values]
        assert [None if pd.isna(value) else str(value) for value in series] == texts, name
        assert series.nunique() == len({text for text in texts if text is not None})


@pytest.mark.parametrize(
    ("name", "texts", "is_text"),
    [
        ("article", ["1.10", "1.1", "2.5"], True), ("Artikelnummer", ["1,10", "1,1"], True),
        ("version", ["3.10", "3.9"], True), ("x", ["1E5", "2E3", "100000", "2000"], True),
        ("x", ["0.12345678901234567891", "0.12345678901234567892"], True),
        ("x", ["1" * 400, "2.5"], True), ("x", [f"-{'1' * 400}", "2.5"], True),
        ("x", ["1e400", "2.5"], True), ("x", ["9007199254740993", "2.5"], True),
        ("price", ["1.50", "1.5", "2"], False), ("price per article", ["1.50", "1.5", "2"], False),
        ("x", ["1E5", "1.5", "-2e-3"], False), ("id", ["1.0", "2.0", "3.0"], False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["csv", "json", "db"])
def test_numerals_that_a_number_would_merge_stay_text(
    tmp_path: Path, form: str, name: str, texts: list[str], is_text: bool
) -> None:
    path = tmp_path / f"t.{form}"
    FORMATS[form]({name: texts, "n": [1] * len(texts)}, path)
    table = loaded(path)
    if is_text:
        assert table.frame[name].tolist() == texts
        assert f"`{name}`" in "\n".join(table.report)
    else:
        assert table.frame[name].tolist() == [float(text) for text in texts]


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (["APAC", "EUR", "NA", ""], ""), (["APAC", "EUR", "NA", "N/A"], "N/A"),
        (["Mild", "None", "Severe", ""], ""), (["MALE", "FEMALE", "NA", "F"], "NA"),
        (["YES", "NO", "NA", "YES"], "NA"), (["A", "B", "C", "NA"], "NA"),
        (["Ann", "Bob", "None", "Eve"], "None"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_words_beside_codes_are_codes(
    tmp_path: Path, form: str, cells: list[str], missing: str
) -> None:
    path = tmp_path / f"t.{form}"
    FORMATS[form]({"n": [1, 2, 3, 4], "zone": cells}, path)
    table = loaded(path)
    assert table.frame["zone"].fillna("?").tolist() == [
        "?" if cell == missing else cell for cell in cells
    ]
    assert ("holds the code" in "\n".join(table.report)) == (missing not in {"NA", "None"})


def test_a_word_that_is_missing_among_numbers_is_no_code(tmp_path: Path) -> None:
    frame = loaded(written(tmp_path, "zone,n\nAPAC,1\nEUR,NA\nNA,2\n")).frame
    assert frame.zone.isna().tolist() == [False, False, True]


@pytest.mark.parametrize("form", ["json", "jsonl", "xlsx", "db"])
def test_integers_of_any_size_are_exact(tmp_path: Path, form: str) -> None:
    values = [172233445566778899, None, 9 if form == "db" else 10**400 + 1]
    columns: Columns = {"key": ["a", "b", "c"], "id": list(map(str, values)), "n": values}
    if form == "xlsx":
        columns["n"] = [1, 2, 3]
    FORMATS[form](columns, tmp_path / f"t.{form}")
    frame = loaded(tmp_path / f"t.{form}").frame
    assert [None if pd.isna(value) else value for value in frame.n] == columns["n"]
    assert str(frame.id.iloc[2]) == str(values[2])


def test_an_impression_shows_integers_as_integers(tmp_path: Path) -> None:
    columns: Columns = {"id": [172233445566778899, None], "n": [1, 2]}
    for form in ("csv", "json", "parquet", "db"):
        FORMATS[form](columns, tmp_path / f"t.{form}")
        (impression,) = impressions(tmp_path / f"t.{form}")
        assert impression.first[0] == ("172233445566778899", "1")
        assert impression.columns[0] == ("id", "integer, 1 missing")


def test_the_index_of_a_parquet_file_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [0.1, 0.2]}, index=pd.Index(["x", "y"], name="city"))
    frame.astype("float32").to_parquet(tmp_path / "a.parquet")
    frame.rename_axis(None).to_parquet(tmp_path / "b.parquet")
    named, nameless = (loaded(tmp_path / name).frame for name in ("a.parquet", "b.parquet"))
    assert named.to_dict("list") == {"city": ["x", "y"], "n": [0.1, 0.2]}
    assert nameless.row.tolist() == ["x", "y"]


def test_numerals_of_a_file_without_a_header_stay_apart(tmp_path: Path) -> None:
    table = loaded(written(tmp_path, "007,2.5,x\n7,2.5,y\n8,3.5,z\n"))
    assert table.frame.column_1.tolist() == ["007", "7", "8"]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_one_odd_value_at_the_end_is_named_and_no_other_lost(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"t.{form}"
    FORMATS[form]({"n": [*range(100_000), "twelve"], "m": [1] * 100_001}, path)
    table = loaded(path)
    assert table.frame.n.dropna().tolist() == [*range(100_000)]
    assert "`n`: 1 values are no numbers ('twelve')" in "\n".join(table.report)


def test_a_file_that_cannot_be_opened_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to("gone.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    (tmp_path / "bad.json.gz").write_bytes(gzip.compress(b"[1]")[:12])
    for name, reason in {
        "link.csv": r"link\.csv is a link to gone\.csv, which is missing",
        "loop.csv": "cannot be opened: Too many levels",
        "two.zip": "holds 2 files",
        "bad.json.gz": "is damaged",
    }.items():
        with pytest.raises(TableError, match=reason):
            loaded(existing(tmp_path / name))
