"""Owners of folders, by the names that anybody may have chosen."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from taskweaver.ces.process import homes
from taskweaver.ces.process.homes import Homes, private_folder, remove_folder, sweep_folders
from taskweaver.ces.sandbox.session_sandbox import _cache_folder
from taskweaver.ces.template import Rendezvous
from taskweaver.utils.system.platform import has_ended


@pytest.fixture
def ended() -> int:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    return process.pid


def test_an_owner_is_one_that_can_be(ended: int) -> None:
    assert has_ended(f"{ended:010d}")
    others = ["", "me", "-1", "²", "٣", "9" * 10, "9" * 40, str(os.getpid())]
    assert [name for name in others if has_ended(name)] == []


def test_a_container_sweeps_its_own_folders_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(homes, "_MOST_BYTES", 1 << 10)
    monkeypatch.setattr(homes, "pid_namespace", lambda: 0x1F)
    for name in (f"tw-{ended}.1f-x", f"tw-{ended}.2f-x", f"tw-{ended}-x"):
        (tmp_path / name).mkdir()
    own = private_folder()
    sweep_folders()
    assert own.name.startswith(f"tw-{os.getpid()}.1f-")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(
        [f"tw-{ended}.2f-x", f"tw-{ended}-x", own.name]
    )
    remove_folder(own)


def test_a_socket_has_room_wherever_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ("long" * 25)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    homes = Homes.sandboxed()
    with homes.new() as home, Rendezvous(home) as expected:
        assert expected.path.is_socket()
    homes.remove()


def test_a_relative_cache_folder_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert _cache_folder() == tmp_path / ".cache" / "taskweaver"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert _cache_folder() == tmp_path / "own" / "taskweaver"
