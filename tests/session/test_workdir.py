"""Files a user adds or names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskweaver.session.errors import FileNotAdded
from taskweaver.session.storage.workdir import WorkingFiles, add_files, files_in
from taskweaver.utils.named_files import Finder, NamedFile


def folders(tmp_path: Path) -> tuple[Path, Path]:
    data, cwd = tmp_path / "data", tmp_path / "cwd"
    data.mkdir()
    cwd.mkdir()
    return data, cwd


def named(text: str, data: Path) -> list[NamedFile]:
    return Finder(None, data).in_text(text)


def test_files_are_copied_from_a_path_or_given_as_content(tmp_path: Path) -> None:
    data, cwd = folders(tmp_path)
    (data / "a.csv").write_text("x\n1\n")
    names = add_files(
        cwd, [{"name": "a.csv", "path": data / "a.csv"}, {"name": "c.txt", "content": "é"}]
    )
    assert names == ["a.csv", "c.txt"]
    assert (cwd / "a.csv").read_text() == "x\n1\n"
    assert (cwd / "c.txt").read_text("utf-8") == "é"


@pytest.mark.parametrize("name", ["../out.csv", "/etc/out.csv", "..\\out.csv", "a/b/../out.csv"])
def test_a_name_never_leaves_the_working_directory(tmp_path: Path, name: str) -> None:
    _, cwd = folders(tmp_path)
    assert add_files(cwd, [{"name": name, "content": b"1"}]) == ["out.csv"]
    assert list(tmp_path.rglob("out.csv")) == [cwd / "out.csv"]


def test_what_cannot_be_added_is_named(tmp_path: Path) -> None:
    for name in ("", "..", "/", "a\0b"):
        with pytest.raises(FileNotAdded, match="not a name"):
            add_files(tmp_path, [{"name": name, "content": b"1"}])
    with pytest.raises(FileNotAdded, match=r"gone\.csv cannot be added: No such file"):
        add_files(tmp_path, [{"name": "gone.csv", "path": tmp_path / "gone.csv"}])
    with pytest.raises(FileNotAdded, match="path or its content"):
        add_files(tmp_path, [{"name": "a.txt"}])


def test_a_file_that_is_already_there_is_not_overwritten_by_a_mention(tmp_path: Path) -> None:
    data, cwd = folders(tmp_path)
    (data / "a.csv").write_text("original")
    (cwd / "a.csv").write_text("changed by code")
    assert WorkingFiles(cwd).bring([], named("a.csv", data)) == []
    assert (cwd / "a.csv").read_text() == "changed by code"


def test_a_file_that_changed_since_is_brought_again(tmp_path: Path) -> None:
    data, cwd = folders(tmp_path)
    files = WorkingFiles(cwd)
    (data / "a.csv").write_text("one")
    assert files.bring([], named("a.csv", data)) == ["files added: a.csv."]
    assert files.bring([], named("a.csv", data)) == []
    (data / "a.csv").write_text("another")
    first, second = files.bring([], named("a.csv", data))
    assert first == "files added: a.csv."
    assert second == "files changed, read them again: a.csv."
    assert (cwd / "a.csv").read_text() == "another"


def test_a_copy_that_code_changed_is_kept_and_that_is_said_once(tmp_path: Path) -> None:
    data, cwd = folders(tmp_path)
    files = WorkingFiles(cwd)
    (data / "a.csv").write_text("one")
    files.bring([], named("a.csv", data))
    (cwd / "a.csv").write_text("work of code")
    assert files.bring([], named("a.csv", data)) == []
    (data / "a.csv").write_text("another")
    (note,) = files.bring([], named("a.csv", data))
    assert "a.csv" in note
    assert "not the copy here" in note
    assert (cwd / "a.csv").read_text() == "work of code"
    assert files.bring([], named("a.csv", data)) == []


@pytest.mark.parametrize("tables_only", [True, False])
def test_a_link_that_cannot_be_followed_hides_no_file(tmp_path: Path, *, tables_only: bool) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "long.csv").symlink_to("y" * 300)
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "gone.csv").symlink_to("nowhere")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    assert list(files_in(tmp_path, tables_only=tables_only)) == [tmp_path / "a.csv"]


def test_after_a_restart_a_file_that_was_edited_since_is_brought_again(tmp_path: Path) -> None:
    data, cwd = folders(tmp_path)
    source = data / "a.csv"
    source.write_text("x\n1\n")
    WorkingFiles(cwd).bring([], named("a.csv", data))
    assert WorkingFiles(cwd).bring([], named("a.csv", data)) == []
    source.write_text("x\n1\n2\n")
    later = (cwd / "a.csv").stat().st_mtime_ns + 1_000_000_000
    os.utime(source, ns=(later, later))
    notes = WorkingFiles(cwd).bring([], named("a.csv", data))
    assert "files changed, read them again: a.csv." in notes
    assert (cwd / "a.csv").read_text() == "x\n1\n2\n"
