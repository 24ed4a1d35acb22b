"""A stop by the user in each odd moment of a round ends it, and the next question works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good
from rounds import RELAY, Body, app_over, cell, check_pairs, results, shown
from support import Listener
from tool_replies import called, delta

from taskweaver.module.event_emitter import PostEventType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

BROKEN = called(("run_python", '{"code": "x = (1,'))
MANY = called(*(cell(f"x{n} = {n}") for n in range(200)))
MIXED = called(cell("6 * 7"), text="I multiply.")
SAME = called(cell("'again'"))


def too_long(call: Call) -> None:
    words = "This model's maximum context length is 4096 tokens."
    call.refuse(400, words, code="context_length_exceeded")


MOMENTS: dict[str, tuple[Sequence[Body], int]] = {
    "after broken arguments": ([BROKEN], 1),
    "after text with a call": ([MIXED], 1),
    "in calls without end": ([SAME, SAME], 2),
    "at the refusal of a long prompt": ([too_long], 0),
}
"""Replies before the stop, and the number of the request during which it comes."""


class At(Listener):
    def __init__(self, session: Session, is_meant: Callable[[Any], bool]) -> None:
        super().__init__()
        self.session, self.is_meant = session, is_meant

    def handle(self, event: Any) -> None:
        if self.is_meant(event):
            self.session.interrupt()


def go_on_after_a_stop(
    project: Path,
    bodies: Sequence[Body],
    at: int = 99,
    is_meant: Callable[[Any], bool] = lambda _: False,
) -> list[Call]:
    """Play a round that is stopped during a request, or at an event, and one more."""
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

    with app_over(project, *[answer] * 99) as (app, calls), app.get_session() as session:
        sessions.append(session)
        assert session.send_message("go", At(session, is_meant)).state == "failed"
        before = len(calls)
        is_stopped.append(True)
        assert session.send_message("still there?").answer.text == "Here I am."
        assert len(calls) == before + 1
    check_pairs(calls[-1])
    return calls


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stop_while_the_model_is_asked(project: Path, moment: str) -> None:
    bodies, at = MOMENTS[moment]
    calls = go_on_after_a_stop(project, bodies, at)
    assert len(calls) == at + 2  # nothing is asked after the stop


def begins_a_cell(event: Any) -> bool:
    return event.t is PostEventType.post_start and event.extra["role"] == "CodeInterpreter"


def test_a_stop_between_two_of_many_calls_names_those_that_did_not_run(project: Path) -> None:
    begun: list[Any] = []

    def is_third(event: Any) -> bool:
        begun.extend([event] * begins_a_cell(event))
        return begins_a_cell(event) and len(begun) == 3

    texts = results(go_on_after_a_stop(project, [MANY], is_meant=is_third)[-1])
    assert len(texts) == 200
    assert texts[2].startswith("Interrupted, not run to its end")
    assert texts[3] == "Interrupted, not run."
    assert "too many" in texts[100].lower()


def test_a_stop_in_the_text_before_a_call(project: Path) -> None:
    def stalls(call: Call) -> None:
        call.start()
        call.send(delta(content="I multiply, "))
        call.stall()

    def is_text(event: Any) -> bool:
        return event.t is PostEventType.post_message_update and "multiply" in event.msg

    calls = go_on_after_a_stop(project, [stalls], is_meant=is_text)
    assert "multiply" not in shown(calls[-1])


NOTE = "its request has no answer.)"
CODE = "open('ran', 'w').write('x')"


def interrupted(project: Path, *bodies: Body, role: str = "", **config: object) -> list[Call]:
    """Play a round that ends at the first post of a role, and two more."""

    def is_post(event: Any) -> bool:
        return event.t is PostEventType.post_start and event.extra["role"] == role

    with app_over(project, *bodies, **config) as (app, calls), app.get_session() as session:
        assert session.send_message("first question", At(session, is_post)).state == "failed"
        for text in ("second question", "third question"):
            assert session.send_message(text).state == "finished"
    assert len(calls) == len(bodies)
    return calls


def overloaded(call: Call) -> None:
    call.refuse(500, "overloaded")


def test_89_the_next_prompt_shows_an_interrupted_round(project: Path) -> None:
    bodies = [called(cell(CODE)), good("Second."), good("Third.")]
    calls = interrupted(project, *bodies, role="CodeInterpreter")
    for call in calls[1:]:
        text = shown(call)
        assert text.index(CODE) < text.index(NOTE) < text.index("second question")
        assert text.count(NOTE) == 1
        assert "may have been done in part" in text
    before = calls[1].body["messages"]
    assert calls[2].body["messages"][: len(before)] == before  # for the cache


def test_89_an_interpreter_reads_of_its_interrupted_order(project: Path) -> None:
    first, second = (
        called(("ask", {"role": "CodeInterpreter", "order": text}))
        for text in ("the first order", "the second order")
    )
    bodies = [first, second, called(cell("6 * 7", is_last=True)), good("Second."), good("Third.")]
    calls = interrupted(project, *bodies, role="CodeInterpreter", **RELAY)
    for call in calls[1:3]:
        assert shown(call).index("the first order") < shown(call).index(NOTE)
    assert "the second order" in shown(calls[2])


def test_a_failed_round_is_shown_with_its_outcome_or_left_out_where_nothing_was_ordered(
    project: Path,
) -> None:
    calls = interrupted(project, overloaded, good("Second."), good("Third."))
    assert "first question" not in shown(calls[1])
    assert NOTE not in shown(calls[2])
    calls = interrupted(project, called(cell("6 * 7")), overloaded, good("a"), good("b"))
    text = shown(calls[2])
    assert text.index("42") < text.index(NOTE) < text.index("second question")
    assert "Interrupted" not in text
