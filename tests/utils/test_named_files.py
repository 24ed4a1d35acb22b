"""A file that a text names is found however it is spelled."""

from __future__ import annotations

import gzip
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.utils.data_files import is_data_file
from taskweaver.utils.named_files import Finder

NAMES = (
    "o.csv", "my sales (final).csv", "O'Brien, 2.csv", "Größe.csv", "データ.csv", "p.json.gz",
    "t.csv.gz", "z.zip", "README", "sub dir/d.csv", "other/o.csv", "notes.md",
)  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files, links, and things that are no files."""
    folder = tmp_path_factory.mktemp("home") / "Some Folder"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(b"x\n1\n") if ".gz" in name else b"x\n1\n")
    (folder / "link.csv").symlink_to("o.csv")
    (folder / "linked").symlink_to("sub dir")
    (folder / "gone.csv").symlink_to("nowhere.csv")
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "round").symlink_to("round")
    os.mkfifo(folder / "pipe.csv")
    (folder.parent / "root").symlink_to(folder)
    return folder


FOUND = [
    # text, with {home} for the folder; the file; how the text spells it, if not as the file
    ("rows in o.csv?", "o.csv", "o.csv"),
    ("rows in ~/o.csv: how many?", "o.csv", "~/o.csv"),
    ('rows in "{home}/o.csv"', "o.csv", "{home}/o.csv"),
    ("rows in {home}/o.csv.", "o.csv", "{home}/o.csv"),
    ("rows in '{home}/o.csv'!", "o.csv", "{home}/o.csv"),
    ("rows in {HOME}/o.csv", "o.csv", "{HOME}/o.csv"),
    ("rows in {shell}/my\\ sales\\ \\(final\\).csv ", "my sales (final).csv", None),
    ("sum my sales (final).csv please", "my sales (final).csv", "my sales (final).csv"),
    ("file://{url}/my%20sales%20(final).csv", "my sales (final).csv", None),
    ("FILE://localhost{url}/o.csv", "o.csv", None),
    ("mean in O'Brien, 2.csv", "O'Brien, 2.csv", "O'Brien, 2.csv"),
    ("Zeilen in größe.csv", "Größe.csv", "größe.csv"),
    ("Zeilen in {nfd}", "Größe.csv", "{nfd}"),
    ("データ.csvの平均", "データ.csv", "データ.csv"),
    ("rows in «o.csv»", "o.csv", "o.csv"),
    ("rows in linked/d.csv", "linked/d.csv", "linked/d.csv"),
    ("rows in {root}/o.csv", "{root}/o.csv", "{root}/o.csv"),
    ("rows in Sub Dir/D.csv", "sub dir/d.csv", "Sub Dir/D.csv"),
    ("open ./README", "README", "./README"),
    ("rows in p.json.gz and t.csv.gz", "p.json.gz", "p.json.gz"),
]


@pytest.mark.parametrize(("text", "file", "spelled"), FOUND)
def test_a_file_is_found_by_any_spelling(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str, file: str, spelled: str | None
) -> None:
    monkeypatch.setenv("HOME", str(home))
    text_of = str(home)
    known = {
        "home": text_of,
        "HOME": text_of.replace("Some Folder", "some folder"),
        "shell": text_of.replace(" ", "\\ "),
        "url": text_of.replace(" ", "%20"),
        "root": str(home.parent / "root"),
        "nfd": unicodedata.normalize("NFD", "Größe.csv"),
    }
    named = Finder(home).in_text(text.format(**known))[0]
    assert named.source == home / file.format(**known)
    assert named.path == named.source.resolve()
    assert named.problem == ""
    assert spelled is None or named.spelled == spelled.format(**known)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rows in {home}/other?", "is a folder"),
        ("rows in gone.csv", "is a link to a file that is missing"),
        ("rows in loop.csv", "cannot be read: Too many levels"),
        ("rows in pipe.csv", "is no ordinary file"),
        ("rows in {home}/round/o.csv", None),
        ("rows in none.csv, {home}/none.csv, ~nobody-here/o.csv", None),
        ("rows in other, sub dir and README", None),
        ("1 / 2 ... or ../.. or e.g. this/that", None),
        ("{long}.csv, /{long}/{long}/o.csv, {home}/{deep}o.csv", None),
        ("o.csv\0 a\0.csv {home}/o\n.csv \udc80.csv", None),
        ("o.csv.bak preo.csv o.csvs http://host{home}/o.csv", None),
    ],
)
def test_a_file_that_cannot_be_used_has_the_reason(
    home: Path, text: str, problem: str | None
) -> None:
    known = {"home": str(home), "long": "x" * 5_000, "deep": "x/" * 3_000}
    found = [named.problem for named in Finder(home).in_text(text.format(**known))]
    assert [reason[: len(problem or "")] for reason in found] == ([problem] if problem else [])


def test_words_name_files_of_the_data_folder_and_paths_none_without_a_place(home: Path) -> None:
    text = f"README, o.csv, other, ./notes.md, other/o.csv, ../x, {home}/z.zip, file://{home}/z.zip"
    assert [named.source.name for named in Finder(None, home).in_text(text)] == ["README", "o.csv"]
    (home / ".hidden.csv").touch()
    asked = f"{text} .hidden.csv \uff0ehidden.csv notes.md"
    tables = Finder(None, home, tables_only=True).in_text(asked)
    assert [named.source.name for named in tables] == ["o.csv"]
    standing_there = Finder(home, home, tables_only=True).in_text("o.csv and notes.md")
    assert [named.source.name for named in standing_there] == ["o.csv", "notes.md"]


@settings(max_examples=examples(30))
@given(st.text())
def test_any_text_is_read_without_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    Finder(folder).in_text(f"{text} ./{text} {text}.csv")
    assert all(named.source.parent == folder for named in Finder(None, folder).in_text(text))


@pytest.mark.parametrize(
    ("name", "is_data"),
    [("a.CSV", True), ("a.csv.gz", True), ("a.json.GZ", True), ("a.zip", True), ("a.tar.gz", False),
     ("a.gz", False), ("a.png", False), ("a.receipt.json", False), ("a.csv.bak", False)],
)  # fmt: skip
def test_suffixes_of_tables(name: str, *, is_data: bool) -> None:
    assert is_data_file(name) is is_data
