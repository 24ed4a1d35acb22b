"""Mentions of files in requests, however they are spelled."""

from __future__ import annotations

import pytest

from taskweaver.tables.files.mentions import find_files, nearest_file
from taskweaver.tables.files.profile import FileInfo, PartInfo
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
        ("mean in penguin.csv", "penguins.csv"), ("mean in gapmindr.csv", "gapminder.csv"),
        ("mean in penguins.xlsx", "penguins.csv"), ("how many penguins are there", "penguins.csv"),
        ("the heaviest penguin", "penguins.csv"),
    ],
)  # fmt: skip
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


def test_the_receipt_of_an_answer_is_no_data_file() -> None:
    assert is_data_file("a.json")
    assert not is_data_file("a.receipt.json")
