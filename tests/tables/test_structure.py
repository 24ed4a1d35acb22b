"""Rows that are no records, headers of several rows, merged cells: the records alone are read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from openpyxl import Workbook  # type: ignore[import-untyped]
from plain import loaded, written

from taskweaver.tables.profiles.profiling import impressions

SALES = "region,amount\nNorth,10\nSouth,20\nWest,30\n"


def book(folder: Path, rows: list[list[object]], *merged: str) -> Path:
    workbook = Workbook()
    for row in rows:
        workbook.active.append(row)
    for cells in merged:
        workbook.active.merge_cells(cells)
    workbook.save(folder / "t.xlsx")
    return folder / "t.xlsx"


@pytest.mark.parametrize(
    ("text", "column", "total", "words"),
    [
        (f"{SALES}Total,60\nSource: export,\n", "amount", 60, ["'Total'", "'Source: export'"]),
        ("region,amount\nTotal,60\nN,25\nS,35\n", "amount", 60, ["1 total row ('Total')"]),
        (
            "r,c,year,n\nN,A,2020,10\nN,B,2020,20\nN Total,,,30\nS,C,2020,5\nS Total,,,5\n"
            "Grand Total,,,35\n* estimated,,,\nNote: x, y and z\n",
            "n",
            35,
            ["3 total rows ('N Total', 'S Total', 'Grand Total')", "2 note rows"],
        ),
        (
            "r,p,n\nN,a,1\nS,a,4\nN,b,2\nS,b,5\nN,Total,3\nS,Total,9\nTotal,a,5\nTotal,b,7\n"
            "Total,Total,12\n",
            "n",
            12,
            ["5 total rows"],
        ),
        (
            "Region;Betrag;Anteil\nNord;1.000,50;25%\nSüd;3.001,50;75%\nZwischensumme;4.002,00;100%\n"
            "West;1,00;0%\nSumme;4.003,00;100%\nQuelle: Amt;;\nStand: 01.01.2024;;\n",
            "Betrag",
            4003,
            ["'Zwischensumme', 'Summe'", "'Quelle: Amt'", "'Stand: 01.01.2024'"],
        ),
        (
            "都市,人口\n東京,14\n大阪,9\n合計,23\n出典\uff1a総務省,\n",
            "人口",
            23,
            ["'合計'", "'出典\uff1a総務省'"],
        ),
        (f"{SALES}Total,60\nPrepared by the finance team,\n", "amount", 60, ["'Prepared by"]),
        ("r,pop,area\n,(thousand),(km2)\nN,1,2.5\nS,3,4.5\n", "pop", 4, ["'(thousand), (km2)'"]),
        ("a,b\n1,2\n3,4\n\ufeffa,b\n5,6\n", "b", 12, ["'repeated header'"]),
    ],
)
def test_rows_that_are_no_records_are_left_out_and_named(
    tmp_path: Path, text: str, column: str, total: float, words: list[str]
) -> None:
    table = loaded(written(tmp_path, text))
    assert table.frame[column].sum() == total
    assert table.frame[column].notna().all()
    assert all(word in table.report[-1] for word in ["Left out", *words])


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("city,n\nTotal,7\nBerlin,3\nParis,2\nRome,9\n", "'Total' may name a total"),
        ("name,n\nA,5\nTotal,5\n", "'Total' may name a total"),
        ("name,n\nTotal,5\nB,2\nTotal,9\n", "'Total' may name a total"),
        ("name,n\nA,5\nB,2\nTotal,\n", "'Total', alone in a row"),
        ("name,mail,tel\nBob,b@x,1\nAnn,a@x,2\nZed,,\n", "'Zed', alone in a row"),
        ("name,n\nA,5\nB,2\nTotally,7\n", ""),
        ("category,n\nA,5\nB,6\nOther,11\n", ""),
        ("cereal,stars\nTrix,4\nTotal Flakes,4\nKix,2\nChex,3\nTotal Bran,3\nLife,1\n", ""),
        ("city\nBerlin\nTotal\nParis\n", ""),
    ],
)
def test_a_row_that_may_be_a_record_is_kept(tmp_path: Path, text: str, doubt: str) -> None:
    table = loaded(written(tmp_path, text))
    assert len(table.frame) == text.count("\n") - 1
    assert "Left out" not in "\n".join(table.report)
    assert doubt in table.report[-1]


def test_totals_and_notes_of_a_workbook(tmp_path: Path) -> None:
    rows = [["region", "n"], ["N", 10], ["S", 20], ["Total", 30], [], ["Source: export"]]
    table = loaded(book(tmp_path, rows))
    assert table.frame.to_dict("list") == {"region": ["N", "S"], "n": [10, 20]}
    assert "'Total'" in table.report[-1]


@pytest.mark.parametrize(
    ("rows", "merged"),
    [
        (["Region,Q1,,Q2,", ",Budget,Actual,Budget,Actual"], ["A1:A2", "B1:C1", "D1:E1"]),
        (
            ["Plan 2024,,,,", ",Q1,,Q2,", "Region,Budget,Actual,Budget,Actual"],
            ["A1:E1", "B2:C2", "D2:E2"],
        ),
    ],
)
def test_headers_of_several_rows_are_joined(
    tmp_path: Path, rows: list[str], merged: list[str]
) -> None:
    rows = [*rows, "N,1,2,3,4", "S,5,6,7,8"]
    names = ["Region", "Q1 Budget", "Q1 Actual", "Q2 Budget", "Q2 Actual"]
    cells: list[list[object]] = [
        [int(cell) if cell.isdecimal() else cell or None for cell in row.split(",")] for row in rows
    ]
    text = loaded(written(tmp_path, "\n".join(rows)))
    sheet = loaded(book(tmp_path, cells, *merged))
    assert list(text.frame.columns) == list(sheet.frame.columns) == names
    assert text.frame["Q2 Budget"].tolist() == sheet.frame["Q2 Budget"].tolist() == [3, 7]
    assert "header in several" in text.report[0]
    assert "header in several" in sheet.report[0]


def test_a_title_of_several_lines_in_quotes_and_footnotes(tmp_path: Path) -> None:
    title = 'Name:,"Population"\nAbout:,"two\n\nlines"\n=====\n'
    notes = '=====\nFootnotes\n"1 - Men are 65 when they retire"\n"2 - New councils of the north"\n'
    rows = "".join(f"{region},{number},{number}.5,1\n" for number, region in enumerate("ABCDEF"))
    table = loaded(written(tmp_path, f"{title} ,Area (sq km),Persons,Homes\n{rows}{notes}"))
    assert table.frame["Area (sq km)"].tolist() == [0, 1, 2, 3, 4, 5]
    assert "header in line 4" in table.report[0]
    assert "4 note rows" in table.report[-1]


def test_a_text_merged_beside_a_total_does_not_name_the_total(tmp_path: Path) -> None:
    rows = [[None, "Q1", None, None], ["R", "Plan", "Real", "Sum"], ["N", 1, 2, 3]]
    assert list(loaded(book(tmp_path, rows, "B1:C1")).frame.columns) == ["R", "Plan", "Real", "Sum"]


def test_a_header_with_a_gap_takes_no_row_of_texts(tmp_path: Path) -> None:
    assert len(loaded(written(tmp_path, "name,city,\nBob,Rome,x\nAnn,Oslo,y\n")).frame) == 2


def test_merged_cells_are_filled_and_amounts_count_once(tmp_path: Path) -> None:
    rows = [
        ["region", "city", "budget", "n"], ["Europe", None, None, None], ["N", "a", 100, 10],
        [None, "b", None, 20], ["S", "c", 50, 30], [None, "d", 60, 40], [None, "e", 70, 50],
    ]  # fmt: skip

    table = loaded(book(tmp_path, rows, "A2:D2", "A3:A4", "C3:C4", "A5:A6", "X1:Z9"))
    report = "\n".join(table.report)

    assert table.frame.region.tolist()[:4] == ["N", "N", "S", "S"]
    assert table.frame.region.isna().sum() == 1
    assert table.frame.budget.sum() == 280
    assert "`region`: merged cells are filled (2 rows)" in report
    assert "'Europe'" in report
    assert "`budget` has numbers in merged cells" in report


def test_what_a_model_is_shown_counts_records(tmp_path: Path) -> None:
    (shown,) = impressions(written(tmp_path, f"region,amount\nTotal,60\n{SALES[14:]}"))
    assert shown.rows == 3
    assert shown.first[0] == ("North", "10")
    assert shown.columns[0] == ("region", "text, North|South|West, without 1 total row ('Total')")


@pytest.mark.parametrize(
    ("encoding", "texts", "is_said"),
    [
        ("cp1251", ["город", "Москва", "Санкт-Петербург"], True),
        ("koi8-r", ["город", "Москва", "Санкт-Петербург"], True),
        ("cp932", ["都市", "東京", "りんご"], True), ("cp932", ["店舗", "札幌", "仙台"], True),
        ("gb18030", ["城市", "北京", "市场部"], True), ("big5", ["城市", "台北", "臺中"], True),
        ("cp949", ["도시", "서울", "김철수"], True),
        ("cp850", ["stadt", "München", "Größenwahn"], True),
        ("cp1252", ["ville", "Genève", "à vendre"], True),
        ("cp1252", ["straße", "München", "Köln"], False),
        ("utf-16-le", ["город", "Москва", "Казань"], False),
        ("utf-16-be", ["都市", "東京", "一二"], False),
    ],
)  # fmt: skip
def test_encodings_are_found_and_guesses_are_said(
    tmp_path: Path, encoding: str, texts: list[str], is_said: bool
) -> None:
    name, *values = texts
    content = f"{name},n\n" + "".join(f"{value},{len(value)}\n" for value in values)
    table = loaded(written(tmp_path, content.encode(encoding)))
    assert table.frame[name].tolist() == values
    assert ("the encoding was read as" in table.report[-1]) is is_said


def test_single_bytes_that_are_not_utf_8_stay_apart_and_are_said(tmp_path: Path) -> None:
    content = "a,n\nKöln,1\nDüren,2\n".encode() + "Fürth,3\nFärth,4\n".encode("latin-1")
    table = loaded(written(tmp_path, content))
    assert table.frame.a.tolist() == ["Köln", "Düren", "F\\xfcrth", "F\\xe4rth"]
    assert "not UTF-8" in table.report[-1]


def test_an_encoding_of_letters_elsewhere_is_doubted(tmp_path: Path) -> None:
    content = "a,n\nPlzeň,1\nŘíčany,2\n".encode("cp1250")
    assert "Not certain" in loaded(written(tmp_path, content)).report[-1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"t.{suffix}", b"a,b\n1,x\n2,y\n") for suffix in ("xlsx", "parquet", "db", "json")),
        ("t.txt", json.dumps([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], indent=1).encode()),
        ("t.csv", b'{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n'),
        ("t", gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0)),
        ("t.csv", gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0)),
    ],
)
def test_first_bytes_count_more_than_the_suffix(tmp_path: Path, name: str, content: bytes) -> None:
    frame = loaded(written(tmp_path, content, name)).frame
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_a_workbook_may_be_named_csv(tmp_path: Path) -> None:
    path = book(tmp_path, [["a", "b"], [1, "x"]]).rename(tmp_path / "t.csv")
    assert loaded(path).frame.a.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "values", "first"),
    [
        ("date", ["20240101", "20231231"], "2024-01-01"),
        ("order_date", ["20240101", "", "20231231"], "2024-01-01"),
        ("created_at", ["1700000000", "1700086400"], "2023-11-14 22:13:20"),
        ("timestamp", ["1700000000000", "1700086400000"], "2023-11-14 22:13:20"),
        ("Datum", ["45292", "45293"], "2024-01-01"),
        ("d", ["2024-01-05", "2024-01-06 11:00:00"], "2024-01-05"),
    ],
)
def test_numbers_named_like_dates_are_dates(
    tmp_path: Path, name: str, values: list[str], first: str
) -> None:
    text = f"{name},v\n" + "".join(f"{value},1\n" for value in values)
    column = loaded(written(tmp_path, text)).frame[name]
    assert str(column[0].tz_localize(None)).startswith(first)
    assert column.notna().sum() == sum(map(bool, values))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("x", ["20240101", "20231231"], "`x` may hold times as YYYYMMDD (20240101)"),
        ("date", ["20240101", "20239931"], "`date` may hold times as YYYYMMDD"),
        ("x", ["1700000000", "1700086400"], "seconds since 1970"),
        ("x", ["2024-01-05", "05.01.2024"], "dates of several forms ('2024-01-05' and '05.01"),
        ("x", ["2024-01-05"] * 30 + ["05.01.2024"], "dates of several forms"),
        ("x", ["2024-01-05T10:00:00Z", "2024-01-06T10:00:00"], "dates of several forms"),
        ("x", ["2024-Q1", "2024-Q2"], "quarters"),
        ("x", ["5. Januar 2024", "6. März 2024"], "dates with names of months"),
        ("x", ["Jan-24", "Feb-24"], "dates with names of months"),
        ("x", ["2024-01-05 10:00 CET", "2024-01-06 11:00 CET"], "times"),
        ("x", ["13.01.65", "14.02.99"], "years of two digits were read as 1999 to 2065"),
    ],
)
def test_columns_that_look_like_times_are_said(
    tmp_path: Path, name: str, values: list[str], words: str
) -> None:
    table = loaded(written(tmp_path, f"{name},v\n" + "".join(f"{value},1\n" for value in values)))
    assert table.frame[name].notna().all()
    assert words in table.report[-1]


def test_numbers_of_another_name_stay_numbers_without_a_word(tmp_path: Path) -> None:
    table = loaded(written(tmp_path, "salary,v\n45292,1\n45293,2\n"))
    assert table.report == ("t.csv: 2 rows x 2 columns, comma, UTF-8",)


@pytest.mark.parametrize(
    "text",
    [
        "base,quote\nUSD,EUR\nGBP,USD\n", "sex\nm\nf\n",
        "status,place\nin stock,in Berlin\nout,Bonn\n",
        "type,time\nAlert,12:30\nNote,12:45\n", "answer,text\na) yes,x\nb) no,y\n",
        "name,score\nAnn,1\nMary Jane Watson,\n", "city,shops\nGrand Rapids,3\nEast Grand,3\n",
        "team,won,lost\nAll Blacks,3,1\nSprings,2,1\nEagles,1,0\n",
        "category,articles\nSports,3\nWorld,5\nPolitics,2\n", "word,n\nthe,2\nsum,4\nall,2\nof,0\n",
        "name,contact\na,491701234567\nb,+491701234567\n", "k,2020-01-01,2020-02-01\na,1,2\n",
    ],
)  # fmt: skip
def test_records_that_resemble_totals_units_and_notes_are_kept(text: str, tmp_path: Path) -> None:
    frame = loaded(written(tmp_path, text)).frame
    lines = [line.split(",") for line in text.splitlines()]
    assert [*map(str, frame.columns)] == lines[0]
    assert frame.iloc[:, 0].astype(str).tolist() == [line[0] for line in lines[1:]]
