"""A folder without a configuration stays as it was: its sessions are in the user's state folder."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from taskweaver.cli.main import commands
from taskweaver.config.plain_folder import state_place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with one file; kernels start cold."""
    place = tmp_path / "my data"
    place.mkdir()
    (place / "tiny.csv").write_text("Region,Count\nNorth,3\nSouth,5\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    monkeypatch.setenv("EXECUTION_ZYGOTE", "false")
    monkeypatch.chdir(place)
    return place


def run(*arguments: str, text: str | None = None) -> Result:
    result = CliRunner().invoke(commands, list(arguments), input=text)
    assert result.exit_code == 0, result.output
    return result


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_sessions_are_found_again_and_the_folder_holds_nothing_new(
    folder: Path, tmp_path: Path
) -> None:
    first = run("-m", "plot the sum of Count per Region in tiny.csv", "--json")
    assert names(folder) == ["tiny.csv"]
    facts = json.loads(first.stdout)
    (picture,) = map(Path, facts["artifacts"])
    assert picture.is_file()
    assert picture.is_relative_to(tmp_path / "state" / "taskweaver" / "folders")
    assert f"file: {picture}" in first.stderr
    assert "are kept in" in first.stderr

    again = run("--resume", text="sum of Count in tiny.csv\n/save\n/export report.md\n")
    assert "are kept in" not in again.output
    assert facts["session_id"] in run("sessions").stdout
    (saved,) = (folder / "experience").glob("raw_exp_*.yaml")
    assert "3 same" in run("replay", str(saved), "--data", "tiny.csv=tiny.csv").stdout
    assert names(folder) == ["experience", "tiny.csv"]

    place = state_place(folder)
    assert place is not None
    assert place.name.startswith("my-data-")
    assert (place / "folder.txt").read_text() == f"{folder}\n"
    made = [place, place.parent, place.parent.parent]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3


def test_sessions_of_an_earlier_version_stay_in_the_folder(folder: Path) -> None:
    (folder / "workspace" / "sessions").mkdir(parents=True)
    run("-m", "run this code: 1 + 1")
    assert [path for path in (folder / "workspace" / "sessions").iterdir() if path.is_dir()]
    assert "run this code" in run("sessions").stdout


@pytest.mark.parametrize("part", ["workspace", "workspace/sessions"])
def test_a_link_of_another_user_to_a_folder_of_the_user_is_no_earlier_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    user, other = os.geteuid(), os.geteuid() + 1
    own = folder.parent / "own"
    (own / "sessions").mkdir(parents=True)
    link = folder / part
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(own / "sessions" if part.endswith("sessions") else own)
    assert state_place(folder) is None
    facts = Path.lstat

    def of_other(path: Path) -> os.stat_result:
        found = facts(path)
        fields = [*found]
        fields[stat.ST_UID] = other if path == link else user
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "lstat", of_other)
    assert state_place(folder) is not None


def test_a_state_folder_that_cannot_be_written_or_is_relative_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "file" / "below"))
    assert state_place(folder) is None
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "home")
    assert state_place(folder) is None


def test_a_project_keeps_its_sessions(folder: Path) -> None:
    (folder / "taskweaver_config.json").write_text("{}")
    run("--trust", "-m", "run this code: 1 + 1")
    assert {"logs", "workspace"} < set(names(folder))


@pytest.mark.parametrize("has_old", [False, True])
def test_macos_keeps_its_state_in_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_old: bool
) -> None:
    old = tmp_path / ".local" / "state" / "taskweaver"
    if has_old:
        old.mkdir(parents=True)
    shims = Path(__file__).parents[1] / "fixtures" / "macos"
    code = "from taskweaver.utils.system.installation import state_folder; print(state_folder())"
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(shims)}
    del environment["XDG_STATE_HOME"]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    library = tmp_path / "Library" / "Application Support" / "taskweaver"
    assert done.stdout.strip() == str(old if has_old else library)


def test_data_files_of_the_folder_are_its_data(folder: Path) -> None:
    (folder / "notes.md").write_text("private")
    (folder / ".hidden.csv").write_text("a\n1\n")
    outside = folder.parent / "outside.csv"
    outside.write_text("secret\n1\n")
    (folder / "leak.csv").symlink_to(outside)
    before = names(folder)
    output = run(text="which files do I have?\nmean Count in the South\n").output
    assert "There is 1 file:\n\n1. `tiny.csv` (2 rows): `Region`, `Count`" in output
    assert "Mean of `Count` where `Region` is South (1 row)" in output
    assert names(folder) == before
    place = state_place(folder)
    assert place is not None
    copies = {path.name for path in place.rglob("cwd/*")}
    assert copies == {"tiny.csv"}
