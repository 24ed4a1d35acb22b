"""Copies of working folders for forks: whole, within a limit, and refused with a reason."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path, PurePosixPath

import pytest

from taskweaver.session.errors import SessionError
from taskweaver.session.storage.workdir import clone_into
from taskweaver.utils.file_system.safe_fs import DEEPEST, Folder


def test_a_folder_is_copied_whole_within_the_limit(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "big.bin").write_bytes(b"x" * 3000)
    (source / "link").symlink_to("/etc/hostname")
    (tmp_path / "staging").mkdir()
    with Folder.at(tmp_path) as session, Folder.at(source) as folder:
        clone_into(session, folder, PurePosixPath("copy"), "cwd", limit_bytes=10_000)
        with contextlib.suppress(SessionError):  # not where the file system shares storage
            clone_into(session, folder, PurePosixPath("small"), "cwd", limit_bytes=100)
    assert (tmp_path / "copy" / "cwd" / "sub" / "big.bin").read_bytes() == b"x" * 3000
    assert (tmp_path / "copy" / "cwd" / "link").is_symlink()
    kept = tmp_path / "small" / "cwd" / "sub" / "big.bin"
    assert kept.exists() == (tmp_path / "small").exists()
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_folder_nested_too_deeply_is_refused_with_a_reason_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "source").joinpath(*["d"] * (DEEPEST + 1)).mkdir(parents=True)
    (tmp_path / "staging").mkdir()
    with (
        Folder.at(tmp_path) as session,
        Folder.at(tmp_path / "source") as folder,
        pytest.raises(SessionError, match="64 levels of folders") as refusal,
    ):
        clone_into(session, folder, PurePosixPath("copy"), "cwd", limit_bytes=10_000)
    assert "fork_limit_mb" not in str(refusal.value)


def test_a_file_that_may_not_be_read_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source" / "a" / "b").mkdir(parents=True)
    (tmp_path / "source" / "a" / "b" / "secret.bin").touch()
    (tmp_path / "staging").mkdir()

    def refused(_folder: Folder, path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)  # root may read all

    monkeypatch.setattr(Folder, "open_file", refused)
    with (
        Folder.at(tmp_path) as session,
        Folder.at(tmp_path / "source") as folder,
        pytest.raises(SessionError, match=r"'a/b/secret\.bin'"),
    ):
        clone_into(session, folder, PurePosixPath("copy"), "cwd", limit_bytes=10_000)
