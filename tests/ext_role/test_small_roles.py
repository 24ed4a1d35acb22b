"""Roles of the package that need nothing: Echo and Recepta, in a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.round import Round


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def ask(project: Path, replies: list[str], **config: object) -> tuple[Round, Script, list[str]]:
    script = Script(replies)
    keys = {name.replace("__", "."): value for name, value in config.items()}
    with TaskWeaverApp(project, model=script, config=keys) as app:
        return app.get_session().send_message("go"), script, app.warnings


def test_the_echo_alone_answers_the_user(project: Path) -> None:
    round_, _, warnings = ask(project, [], session__roles=["echo"], echo__decorator="~")
    assert not warnings
    assert round_.post_list[-1].send_to == "User"
    assert round_.post_list[-1].message == "~go~"


def test_roles_of_the_package_take_part_only_where_they_are_named(project: Path) -> None:
    _, script, _ = ask(project, [planner_reply("User", "hi")])
    assert "Echo" not in str(script.prompts[0][0]["content"])


def test_recepta_takes_many_notes_in_one_round(project: Path) -> None:
    thoughts = ["either a or b", "a fails on the first row", "so it is b", "b fits all rows"]
    replies = [planner_reply("Recepta", thought) for thought in thoughts]
    round_, _, _ = ask(
        project,
        [*replies, planner_reply("User", "b")],
        session__roles=["planner", "recepta"],
        recepta__decorator="*",
    )
    assert round_.state == "finished"
    answers = [post.message for post in round_.post_list if post.send_from == "Recepta"]
    assert answers == ["*Noted. Go on.*"] * 4
    assert round_.post_list[-1].message == "b"


def test_the_same_note_again_and_again_ends_the_round(project: Path) -> None:
    replies = [planner_reply("Recepta", "let me think")] * 3
    round_, _, _ = ask(project, replies, session__roles=["planner", "recepta"])
    assert "went in circles" in round_.post_list[-1].message
