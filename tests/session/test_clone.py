"""Copies of working folders for forks: whole, within a limit, and refused with a reason."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path, PurePosixPath

import pytest

from taskweaver.session.errors import SessionError
from taskweaver.session.storage.workdir import clone_into
from taskweaver.utils.file_system.safe_fs import DEEPEST, Folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "staging").mkdir()
    (tmp_path / "source" / "sub").mkdir(parents=True)
    return tmp_path / "source"


def clone(source: Path, name: str, limit_bytes: int, inside: str = "cwd") -> Path:
    with Folder.at(source.parent) as session, Folder.at(source) as folder:
        clone_into(session, folder, PurePosixPath(name), inside, limit_bytes=limit_bytes)
    return source.parent / name / inside


def test_a_folder_is_copied_whole_within_the_limit(source: Path, tmp_path: Path) -> None:
    (source / "sub" / "big.bin").write_bytes(b"x" * 3000)
    (source / "link").symlink_to("/etc/hostname")
    copy = clone(source, "copy", 10_000)
    with contextlib.suppress(SessionError):  # not where the file system shares storage
        clone(source, "small", 100)
    assert (copy / "sub" / "big.bin").read_bytes() == b"x" * 3000
    assert (copy / "link").is_symlink()
    kept = tmp_path / "small" / "cwd" / "sub" / "big.bin"
    assert kept.exists() == (tmp_path / "small").exists()
    assert list((tmp_path / "staging").iterdir()) == []


def test_holes_and_hard_links_are_copied_as_such(source: Path) -> None:
    with (source / "holes.bin").open("wb") as file:
        for place, text in ((5 << 20, b"first"), (900 << 20, b"last")):
            file.seek(place)
            file.write(text)
        file.truncate(1 << 30)
    (source / "a.bin").write_bytes(b"x" * 300_000)
    (source / "sub" / "b.bin").hardlink_to(source / "a.bin")
    copy = clone(source, "copy", 600_000, "")
    facts = (copy / "holes.bin").stat()
    assert (facts.st_size, facts.st_blocks * 512 < 1 << 20) == (1 << 30, True)
    with (copy / "holes.bin").open("rb") as file:
        for place, text in ((0, bytes(9)), (5 << 20, b"first\0"), (900 << 20, b"last\0")):
            file.seek(place)
            assert file.read(len(text)) == text
    assert (copy / "a.bin").samefile(copy / "sub" / "b.bin")
    assert not (copy / "a.bin").samefile(source / "a.bin")
    assert (copy / "sub" / "b.bin").read_bytes() == b"x" * 300_000


def test_a_folder_nested_too_deeply_is_refused_with_a_reason_of_its_own(source: Path) -> None:
    source.joinpath(*["d"] * (DEEPEST + 1)).mkdir(parents=True)
    with pytest.raises(SessionError, match="64 levels of folders, in d/d/d") as refusal:
        clone(source, "copy", 10_000)
    assert "fork_limit_mb" not in str(refusal.value)


def test_a_file_that_may_not_be_read_is_named_with_its_folder(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "sub" / "secret.bin").touch()

    def refused(_folder: Folder, path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)  # root may read all

    monkeypatch.setattr(Folder, "open_file", refused)
    with pytest.raises(SessionError, match=r"'sub/secret\.bin'"):
        clone(source, "copy", 10_000)
