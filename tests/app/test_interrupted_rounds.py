"""Rounds that were interrupted or failed, as the next prompts show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from sizes import some
from support import Listener, make_project
from test_orders_in_words import cell, order, words
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.events import PostEventType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

FORMS = ("tools", "json", "fences")
NOTE = "its request has no answer.)"
CODE = "open('ran', 'w').write('x')"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


class Interrupt(Listener):
    """Interrupts a session at the first post of a role."""

    def __init__(self, session: Session, role: str) -> None:
        super().__init__()
        self.session, self.role = session, role

    def handle(self, event: Any) -> None:
        if event.t is PostEventType.post_start and event.extra["role"] == self.role:
            self.session.interrupt()


def carried(form: str) -> list[bytes]:
    """Return a reply of the Planner that carries a cell."""
    if form == "tools":
        return called(("run_python", {"intent": "write", "code": CODE}))
    reply = {"send_to": "CodeInterpreter", "message": "write", "code": CODE}
    return good(json.dumps({"response": reply}) if form == "json" else f"```python\n{CODE}\n```")


def play(
    project: Path, form: str, *bodies: list[bytes] | None, role: str = "", **config: object
) -> list[Call]:
    """Play a round that `role` interrupts and two more; return the calls. None is a failure."""

    def answer(call: Call) -> None:
        body = bodies[call.number]
        call.stream(body) if body is not None else call.refuse(500, "overloaded")

    with serving(answer) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.max_retries": 0, "llm.form": form, **config,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            session.send_message("first question", Interrupt(session, role))
            assert session.memory.conversation.rounds[0].state == "failed"
            for text in ("second question", "third question"):
                assert session.send_message(text).state == "finished"
    assert len(endpoint.calls) == len(bodies)
    return endpoint.calls


def shown(call: Call) -> str:
    return json.dumps(call.body["messages"], ensure_ascii=False)


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_89_the_next_prompt_shows_an_interrupted_round(project: Path, form: str) -> None:
    bodies = [carried(form), words(form, "Second."), words(form, "Third.")]
    calls = play(project, form, *bodies, role="CodeInterpreter")
    for call in calls[1:]:
        text = shown(call)
        assert text.index(CODE) < text.index(NOTE) < text.index("second question")
        assert text.count(NOTE) == 1
        assert ("may have been done in part" in text) == (form == "tools")
    before = calls[1].body["messages"]
    assert calls[2].body["messages"][: len(before)] == before  # for the cache


@pytest.mark.parametrize("form", some(("fences", "json", "tools"), 1))
def test_89_an_interpreter_reads_of_its_interrupted_order(project: Path, form: str) -> None:
    bodies = [
        order(form, "the first order"), order(form, "the second order"),
        cell(form, "6 * 7", is_last=True), words(form, "Second."), words(form, "Third."),
    ]  # fmt: skip
    relay = {"session.leader_writes_code": False}
    calls = play(project, form, *bodies, role="CodeInterpreter", **relay)
    for call in calls[1:3]:
        text = shown(call)
        assert text.index("the first order") < text.index(NOTE)
    assert "the second order" in shown(calls[2])


def test_a_round_in_which_nothing_was_ordered_is_left_out(project: Path) -> None:
    calls = play(project, "tools", None, good("Second."), good("Third."))
    assert "first question" not in shown(calls[1])
    assert NOTE not in shown(calls[2])


def test_a_round_that_fails_after_its_cell_is_shown_with_the_outcome(project: Path) -> None:
    cells = called(("run_python", {"intent": "count", "code": "6 * 7"}))
    calls = play(project, "tools", cells, None, good("Second."), good("Third."))
    text = shown(calls[2])
    assert text.index("42") < text.index(NOTE) < text.index("second question")
    assert "Interrupted" not in text
