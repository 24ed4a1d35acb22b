"""Files of many forms: the frame has proper types, and the report says each decision."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from plain import loaded, written

from taskweaver.tables import reading
from taskweaver.tables.errors import MissingTableError, TableError


def kinds(frame: pd.DataFrame) -> dict[str, str]:
    """Return a letter for the kind of each column: int, float, date, bool, text."""
    letters = {"i": "int", "u": "int", "f": "float", "M": "date", "b": "bool"}
    return {str(name): letters.get(dtype.kind, "text") for name, dtype in frame.dtypes.items()}


def report(path: Path) -> str:
    return "\n".join(loaded(path).report)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_separators_and_encodings(tmp_path: Path, separator: str, encoding: str) -> None:
    text = "stadt,n\nMünchen,1\nKöln,2\nBonn,3\n".replace(",", separator)
    frame = loaded(written(tmp_path, text.encode(encoding))).frame
    assert list(frame.columns) == ["stadt", "n"]
    assert list(frame.stadt) == ["München", "Köln", "Bonn"]
    assert frame.n.sum() == 6


def test_an_encoding_that_shows_after_the_sample(tmp_path: Path) -> None:
    text = "a,b\n" + "plain,1\n" * 50_000 + "Köln,2\n"
    frame = loaded(written(tmp_path, text.encode("latin-1"))).frame
    assert frame.a.iloc[-1] == "Köln"


def test_a_plain_file_is_read_by_the_plain_call_and_reported_in_a_line(tmp_path: Path) -> None:
    table = loaded(written(tmp_path, "a,b\nx,1\ny,2\n"))
    assert table.report == ("t.csv: 2 rows x 2 columns, comma, UTF-8",)
    assert dict(table.plan.options) == {}
    assert table.plan.steps == ()


def test_a_file_without_a_header(tmp_path: Path) -> None:
    table = loaded(written(tmp_path, "5.1,3.5,setosa\n4.9,3.0,setosa\n4.7,3.2,setosa\n"))
    assert list(table.frame.columns) == ["column_1", "column_2", "column_3"]
    assert len(table.frame) == 3
    assert "no header" in table.report[1]


def test_years_may_name_columns(tmp_path: Path) -> None:
    frame = loaded(written(tmp_path, "country,2000,2001\nA,1.5,2\nB,3,4\n")).frame
    assert list(frame.columns) == ["country", "2000", "2001"]


def test_row_names_and_empty_ends(tmp_path: Path) -> None:
    named = loaded(written(tmp_path, "a,b\nx,1,2\ny,3,4\nz,5,6\n")).frame
    ended = loaded(written(tmp_path, "a,b\n1,2,\n3,4,\n5,6,\n")).frame
    assert list(named.columns) == ["row", "a", "b"]
    assert ended.to_dict("list") == {"a": [1, 3, 5], "b": [2, 4, 6]}


def test_lines_with_too_many_values_are_named(tmp_path: Path) -> None:
    table = loaded(written(tmp_path, "a,b\n" + "1,2\n" * 20 + "1,2,3,4\n" + "5,6\n"))
    assert len(table.frame) == 21
    assert "Line 22 has more values than the header" in "\n".join(table.report)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1,234", "2,345", "12,5"], [1.234, 2.345, 12.5]),
        (["1.234,5", "2.345", "1"], [1234.5, 2345, 1]),
        (["1,234", "2,345.5", "7"], [1234, 2345.5, 7]),
        (["$1,250.00", "$3", "-$4.50"], [1250, 3, -4.5]),
        (["5 €", "1.000,50 €", "2 €"], [5, 1000.5, 2]),
        (["15%", "2.5%", "0%"], [15, 2.5, 0]),
        (["(3.50)", "2.5", "\u22121"], [-3.5, 2.5, -1]),
        (["1,23,456", "12,345", "12,34,567.50"], [123456, 12345, 1234567.5]),
        (["1", "-", "3", "n/a", "5"], [1, None, 3, None, 5]),
    ],
)
def test_numbers_in_disguise(tmp_path: Path, values: list[str], expected: list[float]) -> None:
    quoted = "".join(f'"{value}",x\n' for value in values)
    frame = loaded(written(tmp_path, f"v,w\n{quoted}")).frame
    pd.testing.assert_series_equal(
        frame.v.astype(float), pd.Series(expected, name="v"), check_dtype=False, rtol=1e-12
    )


def test_thousands_follow_the_decimal_commas_of_other_columns(tmp_path: Path) -> None:
    table = loaded(written(tmp_path, "a;b\n1.234;1,5\n2.345;2,25\n"))
    assert list(table.frame.a) == [1234, 2345]
    assert list(table.frame.b) == [1.5, 2.25]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a,b\n"1,234",x\n"2,345",y\n', "'1,234' was read as 1234"),
        ("p;n\n1.000;1\n2.500;2\n", "`p`: '1.000' was read as 1"),
        ("d,v\n03/04/2024,1\n05/06/2024,2\n", "no value shows if day or month is first"),
        ("price,n\n1.50,1\n1.5,2\n", "`price`: '1.50' and '1.5' are one number."),
    ],
)
def test_what_may_be_read_in_two_ways_is_named(tmp_path: Path, text: str, words: str) -> None:
    assert words in report(written(tmp_path, text))


def test_a_single_column_may_have_decimal_commas(tmp_path: Path) -> None:
    assert loaded(written(tmp_path, "value\n1,5\n2,5\n")).frame.value.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["$5", "€6", "$7"], "amounts are in"), (["5%", "6", "7%"], "per cent"),
        (["13/04/2024", "04/13/2024", "01/02/2024"], "different orders"),
    ],
)  # fmt: skip
def test_values_that_must_not_be_mixed_stay_text(
    tmp_path: Path, values: list[str], reason: str
) -> None:
    path = written(tmp_path, "v,w\n" + "".join(f"{value},1\n" for value in values))
    assert kinds(loaded(path).frame)["v"] == "text"
    assert reason in report(path)


def test_a_column_with_many_texts_stays_text(tmp_path: Path) -> None:
    path = written(tmp_path, "v,w\n" + "1,a\nmany,b\n3,c\n4,d\n5,e\n6,f\n" * 3)
    assert kinds(loaded(path).frame) == {"v": "text", "w": "text"}


@pytest.mark.parametrize(
    ("values", "days"),
    [
        (["03/04/2024", "13/04/2024"], ["2024-04-03", "2024-04-13"]),
        (["03/04/2024", "04/13/2024"], ["2024-03-04", "2024-04-13"]),
        (["March 4 2020", "May 1 2021"], ["2020-03-04", "2021-05-01"]),
        (["2024-01-31", ""], ["2024-01-31", None]),
        (["2024-01-31 10:00", "2024-02-01 11:30"], ["2024-01-31 10:00", "2024-02-01 11:30"]),
        (["2024-01-31T10:00:00Z", "2024-02-01T11:00:00+01:00"],
         ["2024-01-31 10:00", "2024-02-01 10:00"]),
        (["1/2/2024 1:30 PM", "1/13/2024 2:00 AM"], ["2024-01-02 13:30", "2024-01-13 02:00"]),
        (["31-Dec-99", "01-Jan-00"], ["1999-12-31", "2000-01-01"]),
        (["2024-01", "2024-02"], ["2024-01-01", "2024-02-01"]),
    ],
)  # fmt: skip
def test_dates(tmp_path: Path, values: list[str], days: list[str | None]) -> None:
    frame = loaded(written(tmp_path, "d,w\n" + "".join(f"{value},x\n" for value in values))).frame
    assert [None if pd.isna(day) else day for day in frame.d] == [
        None if day is None else pd.Timestamp(day) for day in days
    ]


@pytest.mark.parametrize(
    "text",
    [
        "d,e\n03/04/2024,13/04/2024\n05/06/2024,01/02/2024\n",
        "d,v\n" + "03/04/2024,1\n" * 9_000 + "13/04/2024,2\n",
    ],
    ids=["another column", "after the sample"],
)
def test_evidence_elsewhere_decides_the_order(tmp_path: Path, text: str) -> None:
    assert loaded(written(tmp_path, text)).frame.d.iloc[0] == pd.Timestamp("2024-04-03")


def test_repeated_iso_dates_with_missing_values_are_times(tmp_path: Path) -> None:
    days = ["2024-02-29", "", "2024-03-01", "2024-02-29"]
    table = loaded(written(tmp_path, "day,n\n" + "".join(f"{day},1\n" for day in days)))
    assert table.frame["day"].dt.day.tolist()[::2] == [29, 1]
    assert table.frame["day"].isna().tolist() == [False, True, False, False]


def test_a_late_word_in_a_column_of_iso_dates_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "d,v\n" + "2024-03-04,1\n" * 2_000 + "soon,2\n")
    assert kinds(loaded(path).frame)["d"] == "date"
    assert "1 values are no dates ('soon')" in report(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("zip", ["02108", "10115"]), ("code", ["007", "123"]),
        ("phone", ["+49 30 1234", "+44 20 5678"]), ("x", ["+493012345678", "+442056781234"]),
        ("x", ["12345678901234567890123", "1"]), ("zip", ["10115", "80331"]),
    ],
)  # fmt: skip
def test_numerals_that_are_names_stay_text(tmp_path: Path, name: str, values: list[str]) -> None:
    table = loaded(written(tmp_path, f"{name},v\n" + "".join(f"{value},1\n" for value in values)))
    assert [str(value) for value in table.frame[name]] == values
    assert f"`{name}`" in "\n".join(table.report)


def test_a_zip_code_after_the_sample_makes_its_column_text(tmp_path: Path) -> None:
    frame = loaded(written(tmp_path, "place,v\n" + "10115,0\n" * 5_000 + "00501,0\n")).frame
    assert frame.place.iloc[-1] == "00501"
    assert frame.place.iloc[0] == "10115"
    assert frame.v.sum() == 0


def test_years_stay_integers_and_words_stay_words(tmp_path: Path) -> None:
    frame = loaded(
        written(tmp_path, "year,ok,is,maybe\n1999,yes,true,true\n2000,no,false,\n")
    ).frame
    assert kinds(frame) == {"year": "int", "ok": "text", "is": "bool", "maybe": "bool"}
    assert list(frame.ok) == ["yes", "no"]


def test_odd_column_names(tmp_path: Path) -> None:
    frame = loaded(
        written(tmp_path, 'a b,a b,"x\ny",売上,class,"\'); x"\n1,2,"3,5",4,5,6\n1,2,"4,5",4,5,6\n')
    ).frame
    assert list(frame.columns) == ["a b", "a b.1", "x\ny", "売上", "class", "'); x"]
    assert list(frame["x\ny"]) == [3.5, 4.5]


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ('[{"a": 1, "z": "007"}, {"a": 2, "z": "008"}]', ["a", "z"], 2),
        ('{"a": [1, 2], "z": ["007", "x"]}', ["a", "z"], 2),
        ('{"a": {"0": 1, "1": 2}, "z": {"0": "007", "1": "y"}}', ["a", "z"], 2),
        ('{"meta": {"n": 1}, "data": [{"a": 1, "z": "007"}]}', ["a", "z"], 1),
        ('{"columns": ["a", "z"], "data": [[1, "007"], [2, "x"]]}', ["a", "z"], 2),
        ('{"007": {"a": 1}, "x": {"a": 2}}', ["key", "a"], 2),
        ('{"a": 1, "z": "007"}\n{"a": 2, "z": "x"}\n', ["a", "z"], 2),
    ],
)
def test_shapes_of_json(tmp_path: Path, text: str, columns: list[str], rows: int) -> None:
    frame = loaded(written(tmp_path, text, "t.json")).frame
    assert list(frame.columns) == columns
    assert len(frame) == rows
    assert "007" in frame.iloc[0].tolist()


def test_json_lines(tmp_path: Path) -> None:
    frame = loaded(written(tmp_path, '{"a": "x\u2028y"}\n\n{"a": "z"}\n', "t.ndjson")).frame
    assert list(frame.a) == ["x\u2028y", "z"]


def workbook(folder: Path) -> Path:
    path = folder / "book.xlsx"
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        cover = pd.DataFrame({"Report": ["by Finance", "Draft"]})
        cover.to_excel(book, sheet_name="Cover", index=False)
        plan = pd.DataFrame({"zip": ["00501", "10115"], "v": [1.5, None], "n": [1, 2]})
        plan.to_excel(book, sheet_name="Plan", index=False, startrow=3)
        book.sheets["Plan"]["A1"] = "Plan of the year"
        pd.DataFrame({"a": [1], "b": [2]}).to_excel(book, sheet_name="Other", index=False)
    return path


def test_a_workbook_is_read_at_the_first_sheet_with_a_table(tmp_path: Path) -> None:
    table = loaded(workbook(tmp_path))
    assert list(table.frame.zip) == ["00501", "10115"]
    assert kinds(table.frame) == {"zip": "text", "v": "float", "n": "int"}
    assert table.report[0].endswith("sheet 'Plan', header in row 4")
    assert table.report[1] == "Other sheets: 'Cover', 'Other'."


def test_a_sheet_is_chosen_by_name_in_any_case_or_by_number(tmp_path: Path) -> None:
    path = workbook(tmp_path)
    assert list(loaded(path, "other").frame.columns) == ["a", "b"]
    assert list(loaded(path, 2).frame.columns) == ["a", "b"]
    with pytest.raises(MissingTableError, match="no sheet 'x'; there are 'Cover', 'Plan', 'Other'"):
        loaded(path, "x")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.csv", b"", "e.csv is empty"),
        ("e.csv", b"\n \n", "e.csv is empty"),
        ("b.csv", bytes(range(256)) * 20, "binary"),
        ("p.txt", b"This is a letter of several words, and of no table at all.\n" * 4, "no table"),
        ("w.csv", b"<!DOCTYPE html>\n<html>\n", "markup"),
        ("j.json", b"{", "not JSON"),
        ("j.json", b'{"a": 1}', "no table"),
        ("j.json", b"[" * 100_000, "nested too deeply"),
        ("d.db", b"no database", "no SQLite"),
        ("x.xlsx", b"no workbook", "no workbook"),
        ("x.parquet", b"no parquet", "no Parquet"),
        ("x.xlsx", b"PK\x03\x04damaged", "no workbook"),
    ],
)
def test_a_file_without_a_table_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(TableError, match=message) as raised:
        loaded(written(tmp_path, content, name))
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_refused_with_names_like_it(tmp_path: Path) -> None:
    written(tmp_path, "a\n1\n", "Orders 2024.csv")
    with pytest.raises(FileNotFoundError, match=r"did you mean 'Orders 2024\.csv'"):
        loaded(tmp_path / "orders2024.csv")
    with pytest.raises(TableError, match="is a folder"):
        loaded(tmp_path)


def test_a_file_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "a\n1\n")
    read, times = reading.read_separated, []

    def slow(place: Path, name: str) -> object:
        raw = read(place, name)
        times.append(1)
        if len(times) <= changes:
            path.write_text(f"a\n{'1' * (len(times) + 3)}\n")
        return raw

    monkeypatch.setattr(reading, "read_separated", slow)
    changes = 1
    once = reading.load(path)
    times.clear()
    changes = 2
    twice = reading.load(path)

    assert once.frame.a.tolist() == [1111]
    assert len(once.report) == 1
    assert "is being changed" in twice.report[-1]
