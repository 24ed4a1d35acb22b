"""The slash commands that show prompts, and those of long-term memory."""

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

Output = pytest.CaptureFixture[str]
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


def shown(line: CommandLine, capsys: Output, command: str) -> str:
    capsys.readouterr()
    assert line.handle(command)
    return capsys.readouterr().out


def test_the_calls_of_the_last_round_are_listed_and_each_can_be_read(
    line: CommandLine, capsys: Output
) -> None:
    assert "No model was asked" in shown(line, capsys, "/prompts")
    line.handle("one")
    line.handle("two")
    listed = shown(line, capsys, "/prompts")
    rows = [row.split()[:3] for row in listed.splitlines()[:3]]
    assert rows == [
        ["2", "Planner,", "function/Script,"],
        ["3", "CodeInterpreter,", "function/Script,"],
        ["4", "Planner,", "function/Script,"],
    ]
    assert "tokens" in listed
    first = shown(line, capsys, "/prompts 1")
    assert "--- system ---" in first
    assert "Message: one" in first
    assert first.rstrip().endswith(json.loads(REPLIES[0])["response"]["message"] + '"}}')
    assert "compute" in shown(line, capsys, "/prompts 2")
    reply = shown(line, capsys, "/prompts 4")
    assert "of no use" in reply
    assert "\x1b" not in reply


def test_a_long_prompt_is_shown_page_by_page(line: CommandLine, capsys: Output) -> None:
    line.handle(f"keep this:\n\n{LONG}")
    first = shown(line, capsys, "/prompts 1")
    assert "keep this:\n  | \n  | row 0" in first
    pages = int(first.split("page 1 of ")[1].split(";")[0])
    assert "/prompts 1 2 shows the next" in first
    rest = [shown(line, capsys, f"/prompts 1 {page}") for page in range(2, pages + 1)]
    assert "row 299" in "".join(rest)
    assert "shows the next" not in rest[-1]
    assert f"has {pages} pages" in shown(line, capsys, f"/prompts 1 {pages + 1}")


def test_a_fact_is_kept_listed_found_corrected_and_forgotten(
    line: CommandLine, capsys: Output
) -> None:
    assert "Nothing is kept yet." in shown(line, capsys, "/memory")
    assert "kept as p" in shown(line, capsys, "/remember revenue is net of tax")
    shown(line, capsys, "/remember the north has its own currency")
    listed = shown(line, capsys, "/memory")
    assert "revenue is net of tax" in listed
    assert "user, " in listed
    assert f"session {line.chat.session.session_id}" in listed
    found = shown(line, capsys, "/memory revenue")
    assert "net of tax" in found
    assert "currency" not in found
    assert "No fact has these words." in shown(line, capsys, "/memory zebra")
    (fact,) = line.chat.session.long_memory.named("revenue")
    assert "is now" in shown(line, capsys, f"/memory edit {fact.id} revenue is gross")
    assert "revenue is gross" in shown(line, capsys, "/memory revenue")
    shown(line, capsys, "/reset")  # a new session knows the facts
    assert "forgotten" in shown(line, capsys, "/forget revenue")
    assert "revenue" not in shown(line, capsys, "/memory")


def test_a_proposed_fact_is_listed_with_its_way_and_accepted(
    line: CommandLine, capsys: Output
) -> None:
    line.chat.session.long_memory.remember("the file lacks March")
    (fact,) = line.chat.session.long_memory.all()
    shown(line, capsys, "/reset")  # it is listed in all sessions
    assert f"proposed: /memory keep {fact.id}, or /forget {fact.id}" in shown(
        line, capsys, "/memory"
    )
    assert f"kept as {fact.id}" in shown(line, capsys, f"/memory keep {fact.id}")
    listed = shown(line, capsys, "/memory")
    assert "model, accepted by the user, " in listed
    assert "proposed" not in listed
    assert "kept for the project already" in shown(line, capsys, f"/memory keep {fact.id}")


def test_words_that_mean_several_facts_forget_none(line: CommandLine, capsys: Output) -> None:
    shown(line, capsys, "/remember revenue of the north is net")
    shown(line, capsys, "/remember revenue of the south is gross")
    assert "name an id" in shown(line, capsys, "/forget revenue")
    assert len(line.chat.session.long_memory.all()) == 2


ODD = {
    "/prompts x": "Like this",
    "/prompts 7": "There is no call 7; there are: none yet.",
    "/remember": "/remember TEXT",
    "/forget": "/forget ID",
    "/forget p999999999999999999": "no fact",
    "/memory keep": "/memory keep ID",
    "/memory keep p7": "no fact",
    "/memory edit p7 x": "no fact",
    "/remember " + "x" * 1_001: "at most 1000 characters",
    "/memory \"' OR -- *": "No fact has these words.",
}


def test_odd_commands_are_answered(line: CommandLine, capsys: Output) -> None:
    for command, expected in ODD.items():
        assert expected in shown(line, capsys, command)


def test_the_memory_of_a_project_is_private_made_by_its_first_fact_and_no_link(
    line: CommandLine, capsys: Output, tmp_path: Path
) -> None:
    path = line.chat.session.workspace.parent.parent / "memory.sqlite"
    path.symlink_to(tmp_path / "elsewhere")
    assert "cannot be opened" in shown(line, capsys, "/remember revenue is net of tax")
    assert not (tmp_path / "elsewhere").exists()
    path.unlink()
    shown(line, capsys, "/remember revenue is net of tax")
    assert path.stat().st_mode & 0o077 == 0
