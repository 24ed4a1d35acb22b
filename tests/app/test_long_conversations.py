"""Prompts of long conversations: as short after a resume, a fork and an undo as before."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from patience import PATIENCE_S
from support import NO_SNAPSHOTS, NO_STATES, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.session.session import Session

ROUNDS = 5
KEYS = {
    f"{role}.{key}": value
    for role in ("planner", "code_generator")
    for key, value in {"compaction_threshold": 3, "compaction_retain_recent": 1}.items()
}


class Model:
    """A model of both roles; a summary names the text it was asked with.

    A counter would depend on the order of summaries and calls.

    Attributes:
        prompts: The messages of each call that is no summary.
        summaries: How many summaries were made.
    """

    def __init__(self) -> None:
        self.prompts: list[list[ChatMessage]] = []
        self.summaries = 0

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        system, newest = str(messages[0]["content"]), str(messages[-1]["content"])
        if "## Notes so far" in newest:
            self.summaries += 1
            return f"The notes, number {zlib.crc32(newest.encode()):08x}."
        self.prompts.append(list(messages))
        if "You are the Planner" not in system:
            return code_reply("40 + 2")
        if newest.startswith("From: CodeInterpreter"):
            return planner_reply("User", "It is 42.")
        return planner_reply("CodeInterpreter", "Compute 40 + 2.")

    def sizes(self, calls: slice) -> list[int]:
        """Return the characters of each prompt."""
        return [sum(len(str(m["content"])) for m in prompt) for prompt in self.prompts[calls]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def ask(session: Session, *questions: str) -> None:
    for question in questions:
        assert session.send_message(question).state == "finished"
        for thread in threading.enumerate():
            if thread.name == "compaction":
                thread.join(PATIENCE_S)
                assert not thread.is_alive()


def without_situation(prompts: list[list[ChatMessage]]) -> list[list[str]]:
    """Return prompts without files and variables: a new process gives them whole, once."""
    section = re.compile(r"^## (?:Files|Variables)\n(?:.+\n)+\n", re.MULTILINE)
    return [[section.sub("", str(message["content"])) for message in one] for one in prompts]


def test_a_resumed_session_asks_exactly_as_one_that_went_on(project: Path) -> None:
    questions = [f"question {number:03}" for number in range(ROUNDS + 1)]
    keys = KEYS | NO_SNAPSHOTS
    onward, stopped, resumed = Model(), Model(), Model()
    with TaskWeaverApp(project, model=onward, config=KEYS | NO_STATES) as app:
        ask(app.get_session(), *questions)
    with TaskWeaverApp(project, model=stopped, config=keys) as app:
        session = app.get_session()
        ask(session, *questions[:-1])
        id_ = session.session_id
    with TaskWeaverApp(project, model=resumed, config=keys) as app:
        session = app.resume_session(id_)
        ask(session, questions[-1])
        session.undo()
        ask(session, questions[-1])

    assert stopped.summaries >= 2  # one for both roles, and its successor
    assert resumed.summaries == 0  # also after the undo
    assert without_situation(resumed.prompts[:3]) == without_situation(onward.prompts[-3:])
    assert "The notes, number" in str(resumed.prompts[0])
    assert "tiny.csv" in str(resumed.prompts[0][-1])
    assert "- 1: question 000 -> It is 42." in str(resumed.prompts[0])
    assert "Message: question 000" not in str(resumed.prompts)


@pytest.mark.long
def test_an_undo_keeps_the_summary_of_what_is_left(project: Path) -> None:
    model = Model()
    with TaskWeaverApp(project, model=model, config=KEYS) as app:
        session = app.get_session()
        ask(session, *[f"question {number:03}" for number in range(ROUNDS + 1)])
        made = model.summaries
        before = model.sizes(slice(-3, None))
        session.undo()
        ask(session, f"question {ROUNDS:03}")

    assert model.summaries == made
    assert model.sizes(slice(-3, None)) == before
