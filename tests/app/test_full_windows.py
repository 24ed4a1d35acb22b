"""Long conversations with models of small windows: no question is lost, and no fact."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from patience import PATIENCE_S
from sizes import some
from support import Listener, make_project
from tool_replies import called
from windowed_endpoint import WindowedModel, recall, tokens_of, with_usage

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.round import Round
from taskweaver.module.events import RoundEventType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

WINDOW = 8_192
ROUNDS = some((36, 50), 1)[-1]
FACTS = {
    3: ("the project code is ZX-8141", "project code", "ZX-8141"),
    8: ("prices are in 'Swiss francs', net", "prices net", "Swiss francs"),
    14: ("the raw file is data/2023/sales_raw.parquet", "raw file", "data/2023/sales_raw.parquet"),
    21: ("we drop rows below a limit of 0.0375", "limit drop rows", "0.0375"),
    27: ("the contact is Ms Oyelaran", "contact", "Oyelaran"),
    33: ("we choose the median, not the mean", "choose median mean", "median"),
}


def filler(number: int) -> str:
    """Return a long answer whose words mean nothing."""
    return f"Answer {number}. " + " ".join(f"alpha{n} beta gamma" for n in range(number, 160))


def answer(newest: str) -> str | list[bytes]:
    if "look up: " in newest:
        return recall(newest.rpartition("look up: ")[2])
    return filler(len(newest) % 50) if "go on" in newest else "Noted."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def keys(url: str, **more: object) -> dict[str, Any]:
    endpoint = {"llm.api_type": "openai", "llm.api_base": url, "llm.model": "m"}
    bounds = {"llm.api_key": "k", "llm.max_retries": 0, "llm.form": "tools"}
    return {**endpoint, **bounds, "session.roles": ["planner"], **more}


def ask(session: Session, question: str, listener: Listener | None = None) -> Round:
    """Ask a question, and wait for the summary that it made due."""
    round_ = session.send_message(question, listener)
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    return round_


def is_known(model: WindowedModel, session: Session, query: str, fact: str) -> bool:
    """Return whether a fact stands in the prompt of a question, or in what is looked up."""
    before = len(model.taken)
    assert ask(session, f"look up: {query}").state == "finished"
    shown = [json.dumps(body["messages"], ensure_ascii=False) for body in model.taken[before:]]
    return any(fact in text for text in shown)


def test_56_many_rounds_go_on_in_a_window_of_8k(project: Path) -> None:
    model = WindowedModel(WINDOW, answer)
    with serving(model) as endpoint, TaskWeaverApp(project, config=keys(endpoint.url)) as app:
        session = app.get_session()
        for number in range(ROUNDS):
            planted = FACTS.get(number, ("", "", ""))[0]
            assert ask(session, f"go on, {number}; {planted}").state == "finished"
        assert model.refused <= 2  # until the window is known
        assert model.summaries
        for _, query, fact in FACTS.values():
            assert is_known(model, session, query, fact)
        id_ = session.session_id
    with serving(model) as endpoint, TaskWeaverApp(project, config=keys(endpoint.url)) as app:
        made = model.summaries
        resumed = app.resume_session(id_)
        assert ask(resumed, "hello").state == "finished"
        assert model.summaries == made
        for _, query, fact in FACTS.values():
            assert is_known(model, resumed, query, fact)


def test_57_a_prompt_refused_again_is_made_shorter_again(project: Path) -> None:
    model = WindowedModel(100_000, answer)
    listener = Listener()
    with serving(model) as endpoint, TaskWeaverApp(project, config=keys(endpoint.url)) as app:
        session = app.get_session()
        for number in range(9):
            ask(session, f"go on, {number}")
        model.window = 3_000
        assert ask(session, "go on", listener).state == "finished"
    assert model.refused >= 1
    assert model.summaries


@pytest.mark.long
def test_58_a_question_larger_than_the_window_is_refused_and_the_next_one_answered(
    project: Path,
) -> None:
    model = WindowedModel(WINDOW, answer)
    with serving(model) as endpoint, TaskWeaverApp(project, config=keys(endpoint.url)) as app:
        session = app.get_session()
        listener = Listener()
        lost = ask(session, "word " * 20_000, listener)
        assert lost.state == "failed"
        told = " ".join(listener.messages(RoundEventType.round_error))
        assert "tokens" in told
        assert ask(session, "go on").state == "finished"


def test_the_tokens_of_a_picture_are_no_measure_of_texts(project: Path) -> None:
    """They are far more than the text's, and later prompts far less, which is no cut prompt."""
    drawing = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('up')"
    seen: list[bool] = []

    def reply(call: Call) -> None:
        has_image = "image_url" in json.dumps(call.body["messages"])
        seen.append(has_image)
        is_first = len(seen) == 1
        cell = called(("run_python", {"intent": "draw", "code": drawing}))
        blocks = cell if is_first else good("It rises.")
        call.stream(with_usage(blocks, 6_000 if has_image else tokens_of(call.body)))

    listener = Listener()
    roles = ["planner", "code_interpreter"]
    config = keys("") | {"llm.images": "yes", "session.roles": roles}
    with serving(reply) as endpoint:
        config["llm.api_base"] = endpoint.url
        with TaskWeaverApp(project, config=config) as app:
            session = app.get_session()
            for number in range(some((8, 12), 1)[-1]):
                question = f"what now, {number}? {'Say it again. ' * 60}"
                assert ask(session, question, listener).state == "finished"
    assert any(seen)
    assert not [event for event in listener.events if "window" in str(event.msg)]
    assert not [event for event in listener.events if "drops the beginning" in str(event.msg)]


def test_59_a_server_that_cuts_prompts_silently_is_named_once(project: Path) -> None:
    model = WindowedModel(3_000, answer, is_silent=True)
    listener = Listener()
    with serving(model) as endpoint, TaskWeaverApp(project, config=keys(endpoint.url)) as app:
        session = app.get_session()
        for number in range(16):
            ask(session, f"go on, {number}", listener)
        sizes = [len(json.dumps(body["messages"])) for body in model.taken]
    warned = [event.msg for event in listener.events if "drops the beginning" in str(event.msg)]
    assert len(warned) == 1
    assert sizes[-1] < max(sizes)
