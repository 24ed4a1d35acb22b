"""The guide to roles shows what works."""

from __future__ import annotations

import re
from pathlib import Path

from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp

GUIDE = (Path(__file__).parents[2] / "docs" / "roles.md").read_text("utf-8")


def block(language: str) -> str:
    found, *_ = re.findall(rf"```{language}\n(.*?)\n```", GUIDE, re.DOTALL)
    return str(found)


def test_the_role_of_the_guide_works_as_it_says(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    folder = project / "roles" / "dice"
    folder.mkdir(parents=True)
    (folder / "dice.role.yaml").write_text(block("yaml"))
    (folder / "dice.py").write_text(block("python"))
    replies = [planner_reply("Dice", "3"), planner_reply("Dice", "some")]
    script = Script([*replies, planner_reply("User", "three")])
    config = {"session.roles": ["planner", "dice"], "dice.sides": 1}
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert app.warnings == []
        round_ = app.get_session().send_message("throw three dice")
    answers = [post.message for post in round_.post_list if post.send_from == "Dice"]
    assert answers == ["Thrown: [1, 1, 1], in all 3.", "'some' is not a number of dice."]
    assert "Throws dice." in str(script.prompts[0][0]["content"])


def test_every_shipped_role_takes_part_and_is_in_the_guide(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with TaskWeaverApp(project, model=Script([])) as app:
        names = app.roles.get_role_name_list()
        assert {name for name in names if f"`{name}`" in GUIDE} == set(names)
    script = Script([planner_reply("User", "hi")])
    config = {"session.roles": names}
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        assert session.send_message("hi").state == "finished"
        assert {"Echo", "Recepta", "DocumentRetriever", "WebSearch"} < set(session.roles)
    prompt = str(script.prompts[0][0]["content"])
    shown = set(session.roles) - {"Planner", "CodeInterpreter"}  # the Planner writes cells itself
    assert all(f"### {alias}" in prompt for alias in shown)
