"""The slash commands of long-term memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.chat import Chat
from taskweaver.console.commands.table import CommandLine
from taskweaver.console.terminal.surface import PlainSurface

Output = pytest.CaptureFixture[str]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[CommandLine]:
    project = make_project(tmp_path / "project", has_table=False)
    with TaskWeaverApp(project, config={"llm.api_type": "offline"}) as app:
        yield CommandLine(Chat(app, PlainSurface()))


def shown(line: CommandLine, capsys: Output, command: str) -> str:
    capsys.readouterr()
    assert line.handle(command)
    return capsys.readouterr().out


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
    assert "forgotten" in shown(line, capsys, "/forget revenue")
    assert "revenue" not in shown(line, capsys, "/memory")


def test_a_new_session_knows_the_facts(line: CommandLine, capsys: Output) -> None:
    shown(line, capsys, "/remember revenue is net of tax")
    shown(line, capsys, "/reset")
    assert "revenue is net of tax" in shown(line, capsys, "/memory")


def test_a_conclusion_waits_until_it_is_kept(line: CommandLine, capsys: Output) -> None:
    memory = line.chat.session.long_memory
    assert memory.remember("the file lacks March").startswith("kept in this session as s")
    (fact,) = memory.all()
    assert f"waits for /memory keep {fact.id}" in shown(line, capsys, "/memory")
    assert "kept as p" in shown(line, capsys, f"/memory keep {fact.id}")
    assert "waits" not in shown(line, capsys, "/memory")


def test_words_that_mean_several_facts_forget_none(line: CommandLine, capsys: Output) -> None:
    shown(line, capsys, "/remember revenue of the north is net")
    shown(line, capsys, "/remember revenue of the south is gross")
    assert "name an id" in shown(line, capsys, "/forget revenue")
    assert len(line.chat.session.long_memory.all()) == 2


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/remember", "/remember TEXT"),
        ("/forget", "/forget ID"),
        ("/forget p999999999999999999", "no fact"),
        ("/forget s1", "no fact"),
        ("/memory keep", "/memory keep ID"),
        ("/memory keep p7", "no fact"),
        ("/memory edit p7 x", "no fact"),
        ("/remember " + "x" * 1_001, "at most 1000 characters"),
        ("/memory \"' OR -- *", "No fact has these words."),
    ],
)
def test_odd_commands_are_answered(
    line: CommandLine, capsys: Output, command: str, expected: str
) -> None:
    assert expected in shown(line, capsys, command)


def test_the_memory_of_a_project_is_private_and_made_by_its_first_fact(
    line: CommandLine, capsys: Output
) -> None:
    path = line.chat.session.workspace.parent.parent / "memory.sqlite"
    assert not path.exists()
    shown(line, capsys, "/remember revenue is net of tax")
    assert path.stat().st_mode & 0o077 == 0


def test_a_link_in_place_of_the_memory_is_refused(
    line: CommandLine, capsys: Output, tmp_path: Path
) -> None:
    path = line.chat.session.workspace.parent.parent / "memory.sqlite"
    path.symlink_to(tmp_path / "elsewhere")
    assert "cannot be opened" in shown(line, capsys, "/remember revenue is net of tax")
    assert not (tmp_path / "elsewhere").exists()
