"""The offline analyst where it is offered tools: the same answers as with a schema (row 98)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from taskweaver.analyst.model.service import _parted, reply_with_tools
from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ModelRequest, ModelTool
from taskweaver.memory.round import Round

pytestmark = pytest.mark.usefixtures("no_states")

DATA = Path(__file__).parents[2] / "project" / "data" / "sales.csv"
REQUESTS = (
    "which files do I have?", "mean Price in the North", "and the median?", "only in 2024",
    "write a poem about the sea", "17 * 23", "run this code: 1/0", "help",
)  # fmt: skip


def played(folder: Path, form: str, **config: Any) -> list[Round]:
    (folder / "data").mkdir(parents=True)
    (folder / "taskweaver_config.json").write_text("{}")
    shutil.copy(DATA, folder / "data")
    keys = {"llm.api_type": "offline", "execution.sandbox": "none", "llm.form": form, **config}
    with TaskWeaverApp(folder, config=keys) as app, app.get_session() as session:
        return [session.send_message(request) for request in REQUESTS]


def answers(rounds: list[Round]) -> list[str]:
    return [round_.post_list[-1].message for round_ in rounds]


def test_98_with_tools_the_answers_are_those_with_a_schema(tmp_path: Path) -> None:
    rounds = played(tmp_path / "tools", "tools")
    assert answers(rounds) == answers(played(tmp_path / "json", "json"))
    assert len(rounds[1].post_list) == 6  # a look, a cell, an answer


def test_98_alone_with_tools_it_answers_with_the_outcome(tmp_path: Path) -> None:
    alone = {"session.roles": ["code_interpreter"]}
    found = answers(played(tmp_path / "project", "tools", **alone))
    assert "28.175" in found[2]
    assert "391" in found[5]
    assert "## Variables" not in "".join(found)
    assert found[6] == (
        "I could not do this. The code failed with: ZeroDivisionError: division by zero"
    )


def test_tools_for_a_shell_alone_get_no_reply() -> None:
    shell = ModelTool("run_shell", "Run.", {"type": "object", "properties": {}})
    request = ModelRequest([{"role": "user", "content": "x"}], tools=(shell,))
    assert reply_with_tools(request) is None


@pytest.mark.parametrize("words", ["one", "one\n\ntwo", "## Files\nof mine"])
@pytest.mark.parametrize(
    "head",
    [
        "Let's start the new conversation!",
        'Let\'s start the new conversation!\n\n## Files\n- "a.csv"\n\n## Variables\n- x: 1',
        "## Summary of earlier rounds\na\n\nb\n\n## Variables\nx",
        "## Summary of earlier rounds\na\n\nb\n\n### Kept by the program\n- 1: x",
    ],
)
def test_the_situation_is_parted_from_the_request(head: str, words: str) -> None:
    parted = _parted(f"{head}\n\n{words}")
    assert "\n\n".join(parted) == f"{head}\n\n{words}"
    assert parted == (head, words) or words.startswith("## ")
