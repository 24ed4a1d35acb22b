"""Mentions of files in requests, however they are spelled."""

from __future__ import annotations

import pytest

from taskweaver.tables.files.mentions import find_files, nearest_file
from taskweaver.tables.files.world import FileInfo, PartInfo
from taskweaver.utils.data_files import is_data_file

FILES = (
    FileInfo("penguins.csv"),
    FileInfo("gapminder.csv"),
    FileInfo("staff list 2025.csv"),
    FileInfo("budget.xlsx", (PartInfo("Plan"), PartInfo("Actual"))),
    FileInfo("library.db", (PartInfo("books"), PartInfo("loans"))),
)

CERTAIN = [
    ("rows in ./penguins.csv?", "./penguins.csv", "penguins.csv"),
    ("rows in data/gapminder.csv", "data/gapminder.csv", "gapminder.csv"),
    ("in /srv/p/data/penguins.csv, rows", "/srv/p/data/penguins.csv", "penguins.csv"),
    ("in /w/sessions/7/cwd/penguins.csv", "/w/sessions/7/cwd/penguins.csv", "penguins.csv"),
    ("in C:\\p\\data\\penguins.csv", "C:\\p\\data\\penguins.csv", "penguins.csv"),
    ("in '/srv/my p/data/penguins.csv'", "'/srv/my p/data/penguins.csv'", "penguins.csv"),
    ("mean in PENGUINS.CSV", "PENGUINS.CSV", "penguins.csv"),
    ("mean in 'gapminder.csv'", "'gapminder.csv'", "gapminder.csv"),
    ('mean in "Gapminder.csv"', '"Gapminder.csv"', "gapminder.csv"),
    ("mean in `staff list 2025.csv`", "`staff list 2025.csv`", "staff list 2025.csv"),
    ("mean in «gapminder.csv»", "«gapminder.csv»", "gapminder.csv"),
    ("mean in « gapminder.csv »", "« gapminder.csv »", "gapminder.csv"),
    ("mean in „gapminder.csv“", "„gapminder.csv“", "gapminder.csv"),
    ("mean in “gapminder.csv”", "“gapminder.csv”", "gapminder.csv"),
    ("mean in \u201agapminder.csv\u2018", "\u201agapminder.csv\u2018", "gapminder.csv"),
    ("mean in \u2018gapminder.csv\u2019", "\u2018gapminder.csv\u2019", "gapminder.csv"),
    ("mean in \u2039gapminder.csv\u203a", "\u2039gapminder.csv\u203a", "gapminder.csv"),
    ("「gapminder.csv」の平均", "「gapminder.csv」", "gapminder.csv"),
    ("mean in staff list 2025.csv", "staff list 2025.csv", "staff list 2025.csv"),
    ("mean in the staff list file", "the staff list file", "staff list 2025.csv"),
    ("in the gapminder data, the mean", "the gapminder data", "gapminder.csv"),
    ("gapminder: the mean", "gapminder", "gapminder.csv"),
    ("Load penguins. The mean?", "penguins", "penguins.csv"),
    ("the gapminder one", "the gapminder one", "gapminder.csv"),
    ("the mean (penguins.csv)?", "penguins.csv", "penguins.csv"),
    ("it's in Tom's penguins.csv", "penguins.csv", "penguins.csv"),
]


@pytest.mark.parametrize(("text", "words", "file"), CERTAIN)
def test_a_file_is_found_in_every_spelling(text: str, words: str, file: str) -> None:
    (mention,) = find_files(text, FILES)
    assert (text[mention.start : mention.end], mention.file) == (words, file)
    assert mention.is_certain


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("mean in penguin.csv", "penguins.csv"),
        ("mean in gapmindr.csv", "gapminder.csv"),
        ("mean in penguins.xlsx", "penguins.csv"),
        ("how many penguins are there", "penguins.csv"),
        ("the heaviest penguin", "penguins.csv"),
    ],
)
def test_words_that_may_be_another_thing_are_not_certain(text: str, file: str) -> None:
    (mention,) = find_files(text, FILES)
    assert mention.file == file
    assert not mention.is_certain


@pytest.mark.parametrize(
    "name", ["whales.csv", "staff list 2024.csv", "/etc/penguins.csv", "data-penguins.csv"]
)
def test_a_name_that_no_file_has_is_reported_as_unknown(name: str) -> None:
    mentions = find_files(f"how many rows are in '{name}'?", FILES)
    assert [(mention.file, mention.is_certain) for mention in mentions] == [("", True)]


def test_the_nearest_file_to_an_unknown_name_is_found_or_none() -> None:
    assert nearest_file("penguin-data.csv", FILES) == "penguins.csv"
    assert nearest_file("xyz.csv", FILES) == ""
    assert nearest_file("x.csv", ()) == ""


PARTS = [
    ("total in the sheet Plan of budget.xlsx", "the sheet Plan of budget.xlsx", "Plan"),
    ("total in the Actual sheet (budget.xlsx)", "the Actual sheet (budget.xlsx", "Actual"),
    ("the sheet 'actual' from budget.xlsx", "the sheet 'actual' from budget.xlsx", "Actual"),
    ("the second sheet of budget.xlsx", "the second sheet of budget.xlsx", "Actual"),
    ("mean in library.db#loans", "library.db#loans", "loans"),
    ("mean days in the loans table", "the loans table", "loans"),
]


@pytest.mark.parametrize(("text", "words", "part"), PARTS)
def test_sheets_and_tables_are_found_with_their_file(text: str, words: str, part: str) -> None:
    (mention,) = find_files(text, FILES)
    assert (text[mention.start : mention.end], mention.part) == (words, part)
    assert mention.is_certain


def test_a_part_that_is_named_elsewhere_belongs_to_the_file() -> None:
    mentions = find_files("in budget.xlsx, how many rows are in the Plan sheet?", FILES)
    assert {(mention.file, mention.part) for mention in mentions} == {("budget.xlsx", "Plan")}


def test_a_part_named_like_a_noun_is_not_certain() -> None:
    loans, file = find_files("how many loans are there in library.db?", FILES)
    assert (loans.file, loans.part, loans.is_certain) == ("library.db", "loans", False)
    assert (file.file, file.part, file.is_certain) == ("library.db", "", True)


def test_a_longer_name_is_not_taken_for_a_shorter_one_in_it() -> None:
    files = (FileInfo("list 2025.csv"), FileInfo("staff list 2025.csv"))
    (mention,) = find_files("mean in staff list 2025.csv", files)
    assert mention.file == "staff list 2025.csv"


def test_a_stem_that_two_files_share_names_neither() -> None:
    assert find_files("the sales data", (FileInfo("sales.csv"), FileInfo("sales.json"))) == ()


@pytest.mark.parametrize(
    "name", ["a\nb.csv", "x'); import os.csv", "Größe (m²).csv", "売上.csv", "(.*)+.csv", "$.csv"]
)
def test_odd_names_are_only_names(name: str) -> None:
    files = (FileInfo(name), FileInfo("other.csv"))
    (mention,) = find_files(f"rows of {name}", files)
    assert mention.file == name


def test_ten_thousand_words_are_searched() -> None:
    text = "the mean 'of all' penguins " * 2_500 + "in gapminder.csv"
    assert find_files(text, FILES)[-1].file == "gapminder.csv"


def test_the_receipt_of_an_answer_is_no_data_file() -> None:
    assert is_data_file("a.json")
    assert not is_data_file("a.receipt.json")
