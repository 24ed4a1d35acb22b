"""``--resume`` and ``taskweaver sessions``, with the offline analyst."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_in
from support import NO_STATES, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"llm.api_type": "offline"})


def test_a_session_is_listed_resumed_and_deleted(project: Path) -> None:
    assert "No sessions yet." in run_in(project, "sessions").stdout
    assert run_in(project, "-m", "sum of Count in tiny.csv").exit_code == 0
    listed = json.loads(run_in(project, "sessions", "--json").stdout)
    (session,) = listed
    assert (session["rounds"], session["is_open"]) == (1, False)
    line = run_in(project, "sessions").stdout
    assert session["session_id"] in line
    assert "sum of Count in tiny.csv" in line

    again = run_in(project, "--resume", "-m", "and the mean?")
    assert again.exit_code == 0, again.stderr
    assert "> sum of Count in tiny.csv" in again.stdout
    assert "files added" not in again.stdout
    assert "read_csv" not in again.stdout
    assert "/rebuild" not in again.stdout
    assert "4.0" in again.stdout
    third = run_in(project, "--resume", session["session_id"], typed="/info\n")
    assert session["session_id"] in third.stdout
    assert json.loads(run_in(project, "sessions", "--json").stdout)[0]["rounds"] == 2

    removed = run_in(project, "sessions", "rm", session["session_id"])
    assert removed.exit_code == 0
    assert not (project / "workspace" / "sessions" / session["session_id"]).exists()
    for arguments in (["--resume", "-m", "x"], ["sessions", "rm", session["session_id"]]):
        wrong = run_in(project, *arguments)
        assert wrong.exit_code == 2
        assert "error: There is no session" in wrong.stderr


def test_a_saved_conversation_is_replayed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", NO_STATES | {"llm.api_type": "offline"})
    said = run_in(project, typed="sum of Count in tiny.csv\n/save\n/export report.md\n")
    assert "saved as" in said.stdout
    assert "written to" in said.stdout
    (file,) = (project / "experience").glob("raw_exp_*.yaml")
    same = run_in(project, "replay", str(file))
    assert same.exit_code == 0, same.stdout
    assert "2 cells: 2 same" in same.stdout
    other = project / "other.csv"
    other.write_text("Region,Count\nNorth,30\nSouth,50\n")
    differs = run_in(project, "replay", str(file), "--data", f"tiny.csv={other}", "--json")
    assert differs.exit_code == 1
    steps = [json.loads(line) for line in differs.stdout.splitlines()]
    assert [step["verdict"] for step in steps] == ["differs", "differs"]  # profile and result
    assert "'8' was recorded, now '80'" in steps[1]["details"][0]
    assert run_in(project, "replay", str(file), "--set", "nonsense").exit_code == 2


def test_a_session_is_branched_in_the_chat(project: Path) -> None:
    lines = (
        "sum of Count in tiny.csv\n/fork idea\nrun this code: tiny = tiny * 2\n/branches\n"
        "/diff main\n/checkout main\n/undo\n/merge idea\n/fork a b c\n/checkout nobody\n/info\n"
    )
    said = run_in(project, typed=lines).stdout
    assert "now on idea; /checkout main goes back" in said
    assert "idea  2 rounds, current" in said
    assert "only idea" in said
    assert "now on main, after 1 round" in said
    assert "now on branch-1, after 0 rounds; /checkout main undoes this" in said
    assert "Like this: /fork" in said
    assert "There is no branch 'nobody'" in said
    assert "branch   branch-1" in said


def test_a_damaged_session_is_listed_found_by_the_doctor_and_repaired(project: Path) -> None:
    assert run_in(project, "-m", "sum of Count in tiny.csv").exit_code == 0
    (session,) = json.loads(run_in(project, "sessions", "--json").stdout)
    id_ = session["session_id"]
    assert "1 of 1 are sound" in run_in(project, "doctor").stdout
    assert "nothing to repair" in run_in(project, "sessions", "repair", id_).stderr
    with (Path(session["folder"]) / "memory.sqlite").open("r+b") as file:
        file.write(bytes(4096))
    listed = run_in(project, "sessions").stdout
    assert "1 round  " in listed
    assert "sum of Count in tiny.csv" in listed
    assert "cannot be opened: " in listed
    refused = run_in(project, "--resume", id_, "-m", "and the mean?")
    assert refused.exit_code == 2
    assert "sessions repair" in refused.stderr
    checked = run_in(project, "doctor")
    assert checked.exit_code == 1
    assert f"{id_} is damaged" in checked.stdout
    assert f"sessions repair {id_}" in checked.stdout
    repaired = run_in(project, "sessions", "repair", id_)
    assert repaired.exit_code == 0, repaired.stderr
    assert "1 of rounds" in repaired.stdout
    assert "memory.damaged-1.sqlite" in repaired.stdout
    again = run_in(project, "--resume", id_, "-m", "and the mean?")
    assert again.exit_code == 0, again.stderr
    assert "4.0" in again.stdout
    assert "There is no session" in run_in(project, "sessions", "repair", "nothing").stderr
