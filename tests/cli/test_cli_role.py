"""``taskweaver role``, and what ``doctor`` finds in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from originals import make_original
from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands


def run(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, ["--trust", "-p", str(project), *arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"llm.api_type": "offline"})


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return make_original(tmp_path / "original", {"llm.api_type": "offline"})


def test_a_new_role_takes_part_as_it_is(project: Path) -> None:
    said = run(project, "role", "new", "price_list")
    assert said.exit_code == 0, said.output
    (line,) = [line for line in said.output.splitlines() if "session.roles" in line]
    config: dict[str, Any] = json.loads("{" + line.partition("json: ")[2] + "}")
    assert config == {"session.roles": ["planner", "code_interpreter", "price_list"]}
    script = Script([planner_reply("PriceList", "hello"), planner_reply("User", "ok")])
    config |= {"price_list.prefix": "> ", "llm.api_type": "function"}
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert app.warnings == []
        round_ = app.get_session().send_message("go")
    assert round_.post_list[2].message == "> hello"
    assert "PriceList repeats" in str(script.prompts[0][0]["content"])


@pytest.mark.parametrize("name", ["Price", "9x", "a-b", "class", "../x", "planner", "echo"])
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(project: Path, name: str) -> None:
    said = run(project, "role", "new", name)
    assert said.exit_code == 2
    assert "error: Role" in said.output
    assert not (project / "roles").exists()


def test_a_role_is_not_written_twice_nor_outside_a_project(project: Path, tmp_path: Path) -> None:
    assert run(project, "role", "new", "dice").exit_code == 0
    (project / "roles" / "dice" / "dice.py").write_text("mine = 1\n")
    assert run(project, "role", "new", "dice").exit_code == 2
    assert (project / "roles" / "dice" / "dice.py").read_text() == "mine = 1\n"
    assert "There is no folder" in run(tmp_path / "nowhere", "role", "new", "dice").output
    (tmp_path / "empty").mkdir()
    assert "is not a project" in run(tmp_path / "empty", "role", "new", "dice").output
    assert not any((tmp_path / "empty").iterdir())


def test_the_doctor_says_what_is_in_a_folder_of_the_original(original: Path) -> None:
    (original / "plugins" / "stray.py").write_text("x = 1\n")
    (original / "plugins" / "late.yml").write_text("name: late\n")
    folder = original / "examples" / "planner_examples"
    (folder / "sales").mkdir()
    (folder / "sales" / "a.yaml").write_text("enabled: true\nrounds: []\n")
    (original / "experience" / "exp_odd.yaml").write_text("embedding: []\n")
    (original / "my_roles" / "lost").mkdir()
    (original / "my_roles" / "lost" / "lost.role.yaml").write_text(
        "alias: Lost\nmodule: lost.lost.Lost\nintro: x\n"
    )
    (original / "my_roles" / "half.role.yaml").write_text("alias: Half\n")
    file = original / "taskweaver_config.json"
    keys = json.loads(file.read_text())
    keys["session.roles"].append("web_explorr")
    file.write_text(json.dumps(keys))
    said = run(original, "doctor", "--json")
    found = json.loads(said.output)

    def told(name: str) -> str:
        return "\n".join(item["detail"] for item in found if item["name"] == name)

    assert "add_tax, count_letters, to_foot, to_metre, weather" in told("plugins")
    assert "switched off: old_service" in told("plugins")
    assert "of the project: glossary, lost, shouter" in told("roles")
    assert "taking part: planner, " in told("roles")
    assert "planner: 2, 1 switched off" in told("examples")
    assert "code_generator: 1" in told("examples")
    assert told("learnt") == "experiences: 3"
    assert "workspace.mode has no effect" in told("config")
    unread = told("not read")
    for part in ("stray.py", "late.yml", "sales/a.yaml", "cache/mock.yaml", "plugins/.meta"):
        assert part in unread
    assert "lengths.py" not in unread
    broken = {item["detail"]: item["status"] for item in found if item["name"] == "broken"}
    for part, status in (
        ("exp_odd.yaml", "fail"),
        ("role lost: lost.lost.Lost does not import", "warn"),
        ("role half.role.yaml: `module` must be a text", "warn"),
        ("did you mean 'web_explorer'", "fail"),
    ):
        assert [broken[detail] for detail in broken if part in detail] == [status]
    assert said.exit_code == 1


def test_the_file_of_the_mock_is_read_where_the_mock_answers(original: Path) -> None:
    file = original / "taskweaver_config.json"
    mocked = {"llm.use_mock": True, "llm.mock.mode": "fixed"}
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | mocked))
    found = json.loads(run(original, "doctor", "--json").output)
    details = {item["name"]: item["detail"] for item in found}
    assert "mock.yaml" not in str([item for item in found if item["name"] == "not read"])
    assert details["model"].startswith("mock/fixed (llm.use_mock)")
