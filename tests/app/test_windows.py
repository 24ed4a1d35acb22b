"""Conversations longer than the window of the model: no question is lost, and no fact."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import DONE, Call, event, good, serving
from rounds import app_over, ask, cell, keys_of
from sizes import some
from support import Listener
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

CHARS_OF_A_TOKEN = 3.4
ROUNDS = some((36, 50), 1)[-1]
FACTS = {
    3: ("the project code is ZX-8141", "project code", "ZX-8141"),
    8: ("prices are in 'Swiss francs', net", "prices net", "Swiss francs"),
    14: ("the raw file is data/2023/sales_raw.parquet", "raw file", "data/2023/sales_raw.parquet"),
    21: ("we drop rows below a limit of 0.0375", "limit drop rows", "0.0375"),
    27: ("the contact is Ms Oyelaran", "contact", "Oyelaran"),
    33: ("we choose the median, not the mean", "choose median mean", "median"),
}
SUMMARY = "The user asks for things, and gets them."
ONE_ROLE: dict[str, Any] = {"llm.form": "tools", "session.roles": ["planner"]}


def tokens_of(body: dict[str, Any]) -> int:
    return int(len(json.dumps([body["messages"], body.get("tools")])) / CHARS_OF_A_TOKEN)


def with_usage(blocks: list[bytes], tokens: int) -> list[bytes]:
    """Return the body of a reply that reports its consumption."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    told = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    return [*(block for block in blocks if b'"usage"' not in block and block != DONE), told, DONE]


@dataclass
class WindowedModel:
    """A model with a small window, which refuses longer prompts, and remembers nothing.

    A silent one cuts them at their beginning instead. Keeps the bodies of the requests that were
    answered, without those of summaries.
    """

    window: int
    answer: Callable[[str], str | list[bytes]]
    is_silent: bool = False
    taken: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0
    summaries: int = 0

    def __call__(self, call: Call) -> None:
        tokens = tokens_of(call.body)
        if tokens > self.window and not self.is_silent:
            self.refused += 1
            words = (
                f"This model's maximum context length is {self.window} tokens. However, your"
                f" messages resulted in {tokens} tokens."
            )
            call.refuse(400, words, code="context_length_exceeded")
            return
        message = call.body["messages"][-1]
        newest = str(message["content"])
        if "## Notes so far" in newest:
            self.summaries += 1
            reply: str | list[bytes] = SUMMARY
        elif message["role"] == "tool":  # may quote an earlier "look up: "
            self.taken.append(call.body)
            reply = "Noted."
        else:
            self.taken.append(call.body)
            reply = self.answer(newest)
        blocks = [event(reply), event(finish="stop")] if isinstance(reply, str) else reply
        call.stream(with_usage(blocks, min(tokens, self.window)))


def answer(newest: str) -> str | list[bytes]:
    """Look up what is asked for, or give a long answer whose words mean nothing."""
    if "look up: " in newest:
        return called(("recall", {"query": newest.rpartition("look up: ")[2]}))
    number = len(newest) % 50
    filler = " ".join(f"alpha{n} beta gamma" for n in range(number, 160))
    return f"Answer {number}. {filler}" if "go on" in newest else "Noted."


def check_known(model: WindowedModel, session: Session) -> None:
    """Check that each fact stands in the prompt of a question, or in what is looked up."""
    for _, query, fact in FACTS.values():
        before = len(model.taken)
        assert ask(session, f"look up: {query}").state == "finished"
        shown = [json.dumps(body["messages"], ensure_ascii=False) for body in model.taken[before:]]
        assert any(fact in text for text in shown)


def test_56_many_rounds_go_on_in_a_window_of_8k(project: Path) -> None:
    model = WindowedModel(8_192, answer)
    with serving(model) as endpoint:
        keys = keys_of(endpoint.url, **ONE_ROLE)
        with TaskWeaverApp(project, config=keys) as app:
            session = app.get_session()
            for number in range(ROUNDS):
                planted = FACTS.get(number, ("", "", ""))[0]
                assert ask(session, f"go on, {number}; {planted}").state == "finished"
            assert model.refused <= 2  # until the window is known
            assert model.summaries
            check_known(model, session)
        made = model.summaries
        with TaskWeaverApp(project, config=keys) as app:
            resumed = app.resume_session()
            assert ask(resumed, "hello").state == "finished"
            assert SUMMARY in json.dumps(model.taken[-1]["messages"])
            assert model.summaries <= made + 1  # the newest round may make one due
            check_known(model, resumed)


def test_57_a_prompt_that_is_refused_is_made_shorter(project: Path) -> None:
    model = WindowedModel(100_000, answer)
    with app_over(project, *[model] * 99, **ONE_ROLE) as (app, _):
        session = app.get_session()
        for number in range(9):
            ask(session, f"go on, {number}")
        model.window = 3_000
        assert ask(session, "go on").state == "finished"
    assert (model.refused >= 1, model.summaries >= 1) == (True, True)


def test_59_a_server_that_cuts_prompts_silently_is_named_once(project: Path) -> None:
    model, listener = WindowedModel(3_000, answer, is_silent=True), Listener()
    with app_over(project, *[model] * 99, **ONE_ROLE) as (app, _):
        session = app.get_session()
        for number in range(16):
            ask(session, f"go on, {number}", listener)
    sizes = [len(json.dumps(body["messages"])) for body in model.taken]
    warned = [event.msg for event in listener.events if "drops the beginning" in str(event.msg)]
    assert len(warned) == 1
    assert sizes[-1] < max(sizes)


def test_the_tokens_of_a_picture_are_no_measure_of_texts(project: Path) -> None:
    """They are far more than the text's, and later prompts far less, which is no cut prompt."""
    drawing = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('up')"
    seen: list[bool] = []

    def reply(call: Call) -> None:
        seen.append("image_url" in json.dumps(call.body["messages"]))
        blocks = called(cell(drawing)) if len(seen) == 1 else good("It rises.")
        call.stream(with_usage(blocks, 6_000 if seen[-1] else tokens_of(call.body)))

    listener = Listener()
    with app_over(project, *[reply] * 99, **{"llm.images": "yes"}) as (app, _):
        session = app.get_session()
        for number in range(8):
            question = f"what now, {number}? {'Say it again. ' * 60}"
            assert ask(session, question, listener).state == "finished"
    assert any(seen)
    told = [str(event.msg) for event in listener.events]
    assert not [text for text in told if "window" in text or "drops the beginning" in text]


def prints(_newest: str) -> list[bytes]:
    return called(cell("print('word ' * 4_000)"))


@pytest.mark.parametrize(("window", "most_refused"), [(None, 5), (5_000, 0)])
def test_a_configured_window_is_never_exceeded_and_another_is_learnt(
    project: Path, window: int | None, most_refused: int
) -> None:
    """Each round prints a lot, then is answered."""
    model = WindowedModel(9_000, prints)

    def reply(call: Call) -> None:
        is_outcome = call.body["messages"][-1]["role"] == "tool"
        model.answer = (lambda _: "It is printed.") if is_outcome else prints
        model(call)

    config: dict[str, Any] = {"planner.prompt_compression": False}
    config |= {"llm.context_window": window} if window else {}
    with app_over(project, *[reply] * 99, **config) as (app, _), app.get_session() as session:
        states = [session.send_message(f"print it, number {n}").state for n in range(12)]
    assert states == ["finished"] * 12
    assert model.refused <= most_refused


def test_a_question_larger_than_the_window_is_refused_with_the_numbers_and_the_next_one_works(
    project: Path,
) -> None:
    listener, config = Listener(), {**ONE_ROLE, "llm.context_window": 2_000}
    with app_over(project, *[WindowedModel(9_000, answer)] * 99, **config) as (app, _):
        session = app.get_session()
        assert session.send_message("long " * 9_000, listener).state == "failed"
        assert session.send_message("short").state == "finished"
    assert "1,700 fit" in listener.messages(RoundEventType.round_error)[0]
