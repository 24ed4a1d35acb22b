"""``taskweaver role new``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run_in
from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"llm.api_type": "offline"})


def test_a_new_role_takes_part_as_it_is(project: Path) -> None:
    said = run_in(project, "role", "new", "price_list")
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
    said = run_in(project, "role", "new", name)
    assert said.exit_code == 2
    assert "error: Role" in said.output
    assert not (project / "roles").exists()


def test_a_role_is_not_written_twice_nor_outside_a_project(project: Path, tmp_path: Path) -> None:
    assert run_in(project, "role", "new", "dice").exit_code == 0
    (project / "roles" / "dice" / "dice.py").write_text("mine = 1\n")
    assert run_in(project, "role", "new", "dice").exit_code == 2
    assert (project / "roles" / "dice" / "dice.py").read_text() == "mine = 1\n"
    assert "There is no folder" in run_in(tmp_path / "nowhere", "role", "new", "dice").output
    (tmp_path / "empty").mkdir()
    assert "is not a project" in run_in(tmp_path / "empty", "role", "new", "dice").output
    assert not any((tmp_path / "empty").iterdir())
