"""Text on standard input: each line is a message, and a transcript shows both sides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_in
from support import make_project

from taskweaver.cli.script import messages_in, piped_messages

pytestmark = pytest.mark.usefixtures("no_states")
FENCED = "look at this:\n\n```csv\na,b\n\n/reset\n1,2\n```"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"llm.api_type": "offline"}, has_table=False)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\r\n\r\n\n/reset\r\ntwo", ["one", "/reset", "two"]),
        ("for i in x:\n    print(i)\n\n    i += 1\nnext", None),
        (f"{FENCED}\nnext", [FENCED, "next"]),
        ("~~~\na\n~~~~\nnext", ["~~~\na\n~~~~", "next"]),
        ("```never closed\na\nb", ["```never closed\na\nb"]),
        ("```x``` is code\nnext", ["```x``` is code", "next"]),
        ("one \\\ntwo\nthree", ["one \ntwo", "three"]),
        ("/fork\n\n\n  one\n  two", ["/fork", "one\n  two"]),
        ("`" * 100_000 + "x`\nnext", ["`" * 100_000 + "x`", "next"]),
        ("/home/me/a.csv\nb", ["/home/me/a.csv", "b"]),
        ("  \n\n", []),
    ],
)
def test_a_line_is_a_message_unless_it_belongs_to_the_one_above(
    text: str, messages: list[str] | None
) -> None:
    if messages is None:
        *lines, last = text.split("\n")
        messages = ["\n".join(lines), last]
    assert piped_messages(text) == messages


def test_the_text_of_an_option_is_one_message_except_for_commands() -> None:
    assert messages_in("one\ntwo\n/reset\nthree") == ["one\ntwo", "/reset", "three"]


def test_two_lines_are_two_rounds_and_an_option_is_not_echoed(project: Path) -> None:
    piped = run_in(project, "--json", typed="run this code: 1 + 1\nrun this code: 2 + 2\n")
    rounds = [json.loads(line)["user_query"] for line in piped.stdout.splitlines()]
    assert rounds == ["run this code: 1 + 1", "run this code: 2 + 2"]
    assert "> run this code: 2 + 2" in piped.stderr
    assert "> run" not in run_in(project, "-m", "run this code: 1 + 1").stdout


def test_the_echo_of_several_lines_is_indented_and_shows_no_control_characters(
    project: Path,
) -> None:
    shown = run_in(project, typed="/unknown \x1b[31mred\nrun this code:\n    5 * 5\n").stdout
    assert "\x1b" not in shown
    assert "> run this code:\n      5 * 5\n" in shown
