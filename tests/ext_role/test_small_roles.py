"""Roles of the package that need nothing: Echo and Recepta, in a session."""

from __future__ import annotations

from pathlib import Path

from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.round import Round


def ask(folder: Path, replies: list[str], **config: object) -> tuple[Round, Script]:
    script = Script(replies)
    with TaskWeaverApp(make_project(folder / "project"), model=script, config=config) as app:
        assert not app.warnings
        return app.get_session().send_message("go"), script


def test_the_echo_alone_answers_the_user(tmp_path: Path) -> None:
    round_, _ = ask(tmp_path, [], **{"session.roles": ["echo"], "echo.decorator": "~"})
    assert (round_.post_list[-1].send_to, round_.post_list[-1].message) == ("User", "~go~")


def test_roles_of_the_package_take_part_only_where_they_are_named(tmp_path: Path) -> None:
    _, script = ask(tmp_path, [planner_reply("User", "hi")])
    assert "Echo" not in str(script.prompts[0][0]["content"])


def test_recepta_takes_many_notes_in_one_round(tmp_path: Path) -> None:
    thoughts = ["either a or b", "a fails on the first row", "so it is b", "b fits all rows"]
    replies = [planner_reply("Recepta", thought) for thought in thoughts]
    config = {"session.roles": ["planner", "recepta"], "recepta.decorator": "*"}
    round_, _ = ask(tmp_path, [*replies, planner_reply("User", "b")], **config)
    assert round_.state == "finished"
    answers = [post.message for post in round_.post_list if post.send_from == "Recepta"]
    assert answers == ["*Noted. Go on.*"] * 4
    assert round_.post_list[-1].message == "b"


def test_the_same_note_again_and_again_ends_the_round(tmp_path: Path) -> None:
    replies = [planner_reply("Recepta", "let me think")] * 3
    round_, _ = ask(tmp_path, replies, **{"session.roles": ["planner", "recepta"]})
    assert "went in circles" in round_.post_list[-1].message
