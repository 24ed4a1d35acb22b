"""A stop by the user in each odd moment of a round ends it, and the next question works."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from sizes import some
from support import Listener, make_project
from test_reply_records import check_pairs
from tool_replies import called, delta

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.events import PostEventType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

Body = list[bytes]
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('chart.png')"


def cell(code: str) -> tuple[str, object]:
    return ("run_python", {"intent": "look", "code": code})


def refused(words: str, **more: Any) -> Callable[[Call], None]:
    return lambda call: call.refuse(400, words, **more)


BROKEN = called(("run_python", '{"code": "x = (1,'))
UNKNOWN = called(("sql", {"q": "x"}))
MANY = called(*(cell(f"x{n} = {n}") for n in range(200)))
MIXED = called(cell("6 * 7"), text="I multiply.")
SAME = called(cell("'again'"))
IGNORED = good("Sure:\n```python\n6 * 7\n```")
LONG = refused(
    "This model's maximum context length is 4096 tokens.", code="context_length_exceeded"
)
BLIND = refused("image input is not supported by this model")

MOMENTS: dict[str, tuple[Sequence[Body | Callable[[Call], None]], int]] = {
    "after broken arguments": ([BROKEN], 1),
    "after text with a call": ([MIXED], 1),
    "in calls without end": ([SAME, SAME], 2),
    "at the refusal of a long prompt": ([LONG], 0),
    "after an unknown tool": ([UNKNOWN], 1),
    "after two hundred calls": ([MANY], 1),
    "after ignored tools": ([IGNORED], 1),
    "at the refusal of an image": ([called(cell(PLOT)), BLIND], 1),
}
"""Replies before the stop, and the number of the request during which it comes."""


def go_on_after_a_stop(
    project: Path,
    bodies: Sequence[Body | Callable[[Call], None]],
    at: int,
    listener: Callable[[Session], Listener] | None = None,
) -> list[Call]:
    """Play a round that is stopped during a request, or by a listener, and one more."""
    sessions: list[Session] = []
    is_stopped: list[bool] = []

    def answer(call: Call) -> None:
        if is_stopped:
            call.stream(good("Here I am."))
            return
        if call.number == at:
            sessions[0].interrupt()
        body = bodies[call.number] if call.number < len(bodies) else good("Too late.")
        body(call) if callable(body) else call.stream(body)

    with serving(answer) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "gpt-4o",
            "llm.api_key": "k", "llm.max_retries": 0,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            sessions.append(session)
            events = listener(session) if listener else None
            assert session.send_message("go", events).state == "failed"
            before = len(endpoint.calls)
            is_stopped.append(True)
            assert session.send_message("still there?").post_list[-1].message == "Here I am."
        assert len(endpoint.calls) == before + 1
    check_pairs(endpoint.calls[-1].body["messages"])
    return endpoint.calls


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


@pytest.mark.parametrize("moment", some(list(MOMENTS), 4))
def test_a_stop_while_the_model_is_asked(project: Path, moment: str) -> None:
    bodies, at = MOMENTS[moment]
    calls = go_on_after_a_stop(project, bodies, at)
    assert len(calls) == at + 2  # nothing is asked after the stop


def test_a_stop_between_two_of_many_calls_names_those_that_did_not_run(project: Path) -> None:
    class AtThird(Listener):
        def __init__(self, session: Session) -> None:
            super().__init__()
            self.session, self.cells = session, 0

        def handle(self, event: Any) -> None:
            if event.t is PostEventType.post_start and event.extra["role"] == "CodeInterpreter":
                self.cells += 1
                if self.cells == 3:
                    self.session.interrupt()

    calls = go_on_after_a_stop(project, [MANY], 99, AtThird)
    results = [m["content"] for m in calls[-1].body["messages"] if m["role"] == "tool"]
    assert len(results) == 200
    assert results[2].startswith("Interrupted, not run to its end")
    assert results[3] == "Interrupted, not run."
    assert "too many" in results[100].lower()


def test_a_stop_in_the_text_before_a_call(project: Path) -> None:
    def stalls(call: Call) -> None:
        call.start()
        call.send(delta(content="I multiply, "))
        call.stall()

    class AtText(Listener):
        def __init__(self, session: Session) -> None:
            super().__init__()
            self.session = session

        def handle(self, event: Any) -> None:
            if event.t is PostEventType.post_message_update and "multiply" in event.msg:
                self.session.interrupt()

    calls = go_on_after_a_stop(project, [stalls], 99, AtText)
    assert "multiply" not in json.dumps(calls[-1].body)
