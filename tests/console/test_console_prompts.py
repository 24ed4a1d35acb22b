"""Prompts and replies, read in the console."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Script, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.chat import Chat
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.surface import PlainSurface

LONG = "\n".join(f"row {n}" for n in range(300))
REPLIES = [
    planner_reply("User", "first answer"),
    planner_reply("CodeInterpreter", "compute"),
    code_reply("well", "text"),
    planner_reply("User", "a title \x1b]0;owned\x07 of no use"),
    planner_reply("User", "read it"),
]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[CommandLine]:
    script = Script(REPLIES)
    with TaskWeaverApp(make_project(tmp_path / "p", has_table=False), model=script) as app:
        yield CommandLine(Chat(app, PlainSurface()))


def shown(line: CommandLine, command: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert line.handle(command)
    return capsys.readouterr().out


def test_the_calls_of_the_last_round_are_listed_and_each_can_be_read(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No model was asked" in shown(line, "/prompts", capsys)
    line.handle("one")
    line.handle("two")
    listed = shown(line, "/prompts", capsys)
    rows = [row.split()[:3] for row in listed.splitlines()[:3]]
    assert rows == [
        ["2", "Planner,", "function/Script,"],
        ["3", "CodeInterpreter,", "function/Script,"],
        ["4", "Planner,", "function/Script,"],
    ]
    assert "tokens" in listed
    first = shown(line, "/prompts 1", capsys)
    assert "--- system ---" in first
    assert "Message: one" in first
    assert first.rstrip().endswith(json.loads(REPLIES[0])["response"]["message"] + '"}}')
    assert "compute" in shown(line, "/prompts 2", capsys)
    reply = shown(line, "/prompts 4", capsys)
    assert "of no use" in reply
    assert "\x1b" not in reply


def test_a_long_prompt_is_shown_page_by_page(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    line.handle(f"keep this:\n{LONG}")
    first = shown(line, "/prompts 1", capsys)
    assert "row 0" in first
    pages = int(first.split("page 1 of ")[1].split(";")[0])
    assert "/prompts 1 2 shows the next" in first
    rest = [shown(line, f"/prompts 1 {page}", capsys) for page in range(2, pages + 1)]
    assert "row 299" in "".join(rest)
    assert "shows the next" not in rest[-1]
    assert f"has {pages} pages" in shown(line, f"/prompts 1 {pages + 1}", capsys)


@pytest.mark.parametrize(
    ("command", "words"),
    [("/prompts x", "Like this"), ("/prompts 7", "There is no call 7; there are: none yet.")],
)
def test_what_cannot_be_shown_is_said(
    line: CommandLine, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    assert words in shown(line, command, capsys)
