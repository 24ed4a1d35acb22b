"""The search for a project above the current folder stops where others could put one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskweaver.utils.app_utils import CONFIG_FILE, config_file_of, discover_app_dir

NOBODY = 65534


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder two levels below one with a configuration; the current folder."""
    (tmp_path / CONFIG_FILE).write_text("{}")
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
@pytest.mark.parametrize("steps", [1, 2])
def test_it_stops_at_a_folder_of_another_user(inner: Path, steps: int) -> None:
    os.chown(inner.parents[steps - 1], NOBODY, NOBODY)
    assert discover_app_dir() == (inner, False, True)


def test_it_stops_at_a_folder_that_everyone_can_write_to(inner: Path, tmp_path: Path) -> None:
    assert discover_app_dir() == (tmp_path, True, False)
    tmp_path.chmod(0o1777)
    assert discover_app_dir() == (inner, False, True)


def test_a_file_in_such_a_current_folder_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / CONFIG_FILE).write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert config_file_of(None) == (tmp_path, tmp_path / CONFIG_FILE)
    tmp_path.chmod(0o1777)
    assert config_file_of(None) == (tmp_path, None)
    assert config_file_of(tmp_path) == (tmp_path, tmp_path / CONFIG_FILE)


def test_it_ends_with_the_home_folder(
    inner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(inner.parent))
    assert discover_app_dir() == (inner, False, True)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert discover_app_dir() == (tmp_path, True, False)


def test_it_stops_at_the_border_of_a_file_system(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path.stat

    def of_other_device(path: Path, **how: bool) -> os.stat_result:
        facts = own(path, **how)
        if path in inner.parents:
            return os.stat_result((*facts[:2], facts.st_dev + 1, *facts[3:]))
        return facts

    monkeypatch.setattr(Path, "stat", of_other_device)
    assert discover_app_dir() == (inner, False, True)
