"""Profiles of files: facts on columns, and the values that the words of a request may mean."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from plain import written

from taskweaver.tables.files.profile import ValueMatch
from taskweaver.tables.files.profile_report import merged
from taskweaver.tables.names import profile_tables, read_table
from taskweaver.tables.profiles.matching import ValueFinder
from taskweaver.tables.profiles.profiling import MOST_CHARS
from taskweaver.tables.session import READS


@pytest.fixture(autouse=True)
def _fresh_reads() -> None:
    READS.begin()
    READS.forget()


def found(request: str, *values: str) -> set[tuple[str, str, bool]]:
    finder = ValueFinder(request)
    finder.look("c", values)
    return {
        (words, match.value, match.is_exact)
        for words, all_ in finder.found.items()
        for match in all_
    }


@pytest.mark.parametrize(
    ("request_", "value", "is_exact"),
    [
        ("mean of germany", "Germany", True), ("in the New York area", "new york", True),
        ("Germany's mean", "Germany", True), ("zip 02108", "02108", True),
        ("japanese cars", "Japan", False), ("African countries", "Africa", False),
        ("Brazilian ones", "Brazil", False), ("chinese", "China", False),
        ("italian", "Italy", False), ("german", "Germany", False), ("swedish", "Sweden", False),
        ("european", "Europe", False), ("mexican", "Mexico", False), ("french", "France", False),
        ("females", "female", False), ("the Gentoos", "Gentoo", False), ("cities", "city", False),
        ("a book", "books", False), ("women", "woman", False),
    ],
)  # fmt: skip
def test_values_and_their_forms(request_: str, value: str, is_exact: bool) -> None:
    assert {(name, exact) for _, name, exact in found(request_, value)} == {(value, is_exact)}


@pytest.mark.parametrize(
    ("request_", "value"),
    [
        ("mean of price", "Germany"), ("grade c", "C++"), ("an analysis", "analyst"),
        ("this", "thi"), ("in", "Inn"), ("the sea", "seattle"), ("class", "clas"),
    ],
)  # fmt: skip
def test_other_words_match_nothing(request_: str, value: str) -> None:
    assert not found(request_, value)


def test_a_value_with_punctuation_matches_as_it_is_written() -> None:
    assert ("c++", "C++", True) in found("files in C++, please", "C++")
    assert ("o'neill", "O'Neill", True) in found("sales of O'Neill", "O'Neill")
    assert ("o neill", "O'Neill", True) in found("sales of o neill", "O'Neill")


def test_exact_matches_come_first_and_matches_of_the_same_words_are_bounded() -> None:
    finder = ValueFinder("japanese")
    finder.look("a", ["Japan"])
    finder.look("b", ["Japanese"])
    for number in range(20):
        finder.look(f"c{number}", ["JAPAN"])
    matches = finder.found["japanese"]
    assert matches[0] == ValueMatch("b", "Japanese", is_exact=True)
    assert len(matches) == 6


def test_facts_on_columns(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,n,x,day,ok,year\na,1,1.5,13/01/2024,true,2000\nb,2,,14/01/2024,false,\nc,3,2.5,,true,2001\n",
    )
    columns = {column.name: column for column in profile_tables(path).tables[0].columns}
    kinds = " ".join(f"{name}={column.kind}" for name, column in columns.items())
    assert kinds == "name=text n=integer x=number day=time ok=flag year=integer"
    assert columns["name"].values == ("a", "b", "c")
    assert (columns["day"].low, columns["day"].high) == ("2024-01-13", "2024-01-14")
    year = columns["year"]
    assert (year.low, year.high, year.missing) == ("2000", "2001", 1)


def test_a_column_of_many_values_is_searched_and_not_listed(tmp_path: Path) -> None:
    path = written(tmp_path, "who\n" + "".join(f"person {number}\n" for number in range(5_000)))
    profile = profile_tables(path, "orders of Person 4711")
    assert profile.tables[0].columns[0].values is None
    assert profile.tables[0].matches["person 4711"][0].value == "person 4711"


def test_a_wide_table_fits_with_the_columns_of_the_request(tmp_path: Path) -> None:
    names = [f"a long column name with the number {number}" for number in range(250)]
    frame = pd.DataFrame([[f"value {number}" for number in range(250)]] * 3, columns=names)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    text = repr(profile_tables(tmp_path / "wide.csv", f"mean of {names[-1]}"))
    assert len(text) <= MOST_CHARS
    assert names[-1] in text


def test_long_texts_and_requests_are_bounded(tmp_path: Path) -> None:
    pd.DataFrame({"t": ["x " * 50_000, "y"]}).to_csv(tmp_path / "long.csv", index=False)
    assert len(repr(profile_tables(tmp_path / "long.csv", "word " * 10_000))) <= MOST_CHARS


def test_a_profiled_table_is_not_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "a,b\n1,2\n")
    profile_tables(path)
    kept = next(iter(READS._kept.values()))[1].frame
    first, second = read_table(path), read_table(str(path))
    assert first is kept
    assert second is not kept
    assert capsys.readouterr().out == "t.csv: 1 row x 2 columns, comma, UTF-8\n"
    path.write_text("a,b\n1,2\n3,4\n")
    read_table(path)
    assert capsys.readouterr().out == "t.csv: 2 rows x 2 columns, comma, UTF-8\n"
    assert [read["path"] for read in READS.done] == [str(path)]


def test_a_second_look_prints_the_matches_alone_while_the_file_is_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\nNorth,2\nSouth,1\n")
    known = merged({}, repr(profile_tables(path, "a in the North")))
    second = repr(profile_tables(path, "a in the South", matches_only=True))
    assert "column" not in second
    (table,) = merged(known, second).values()
    assert [column.name for column in table.columns] == ["a", "b"]
    assert set(table.matches) == {"north", "south"}
    assert table.searched == {"a in the North", "a in the South"}
    assert merged({}, second) == {}

    path.write_text("a,b,c\nNorth,2,3\n")
    third = repr(profile_tables(path, "a", matches_only=True))
    (table,) = merged(known, third).values()
    assert [column.name for column in table.columns] == ["a", "b", "c"]


def test_a_table_that_changed_after_its_profile_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n")
    profile_tables(path)
    written(tmp_path, "a,b\n1,2\n3,4\n")
    assert len(read_table(path)) == 2


def test_a_kept_table_is_forgotten_after_some_cells(tmp_path: Path) -> None:
    profile_tables(written(tmp_path, "a,b\n1,2\n"))
    for _ in range(4):
        READS.begin()
    assert not READS._kept
