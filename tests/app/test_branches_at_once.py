"""Branches of a session that answer at the same time, and sessions that release their kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from patience import PATIENCE_S
from rounds import run
from support import NO_SNAPSHOTS, Listener, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.session.errors import LimitReached, SessionBusy
from taskweaver.session.session import Session


class Meeting:
    """A model that answers two questions only when both were asked, and others at once."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        question = str(messages[-1]["content"]).rpartition("say: ")[2].split("\n")[0]
        if "meet" in question:
            self.barrier.wait(PATIENCE_S)
        if "wait" in question:
            self.asked.set()
            self.go_on.wait(PATIENCE_S)
        return answer(question)


def answer(text: str) -> str:
    return planner_reply("User", f"heard {text}")


@pytest.fixture
def model() -> Meeting:
    return Meeting()


@pytest.fixture
def session(project: Path, model: Meeting) -> Iterator[Session]:
    with TaskWeaverApp(project, model=model, config={"limits.session_rounds": 6}) as app:
        yield app.get_session()


def test_two_branches_answer_at_once_and_each_listener_hears_its_own(session: Session) -> None:
    session.fork("b")
    heard, everything = {"main": Listener(), "b": Listener()}, Listener()
    session.event_emitter.register(everything)
    with ThreadPoolExecutor(2) as threads:
        started = {
            name: threads.submit(session.at(name).send_message, f"say: meet {name}", listener)
            for name, listener in heard.items()
        }
        rounds = {name: future.result() for name, future in started.items()}
    for name, listener in heard.items():
        assert rounds[name].answer.text == f"heard meet {name}"
        assert {event.round_id for event in listener.events} == {rounds[name].id}
        assert {event.branch for event in listener.events} == {name}
        (own,) = session.at(name).memory.conversation.rounds
        assert own.id == rounds[name].id
        assert session.at(name).round_usage.calls == 1
        (record,) = session.prompts.records(own.id)
        assert record.reply == answer(f"meet {name}")
    assert session.usage.calls == 2
    assert {event.round_id for event in everything.events} == {item.id for item in rounds.values()}


def test_an_interrupt_of_a_branch_ends_its_round_alone(session: Session, model: Meeting) -> None:
    session.fork("b")
    heard = Listener()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(session.at("b").send_message, "say: wait", heard)
        assert model.asked.wait(PATIENCE_S)
        assert (session.at("b").is_at_work, session.at("main").is_at_work) == (True, False)
        with pytest.raises(SessionBusy, match="branch b"):
            session.at("b").send_message("say: no")
        with pytest.raises(SessionBusy):
            session.release()
        session.at("main").interrupt()
        assert session.send_message("say: fine").state == "finished"
        session.at("b").interrupt()
        model.go_on.set()
        assert waiting.result(PATIENCE_S).state == "failed"
    assert heard.messages(RoundEventType.round_error) == ["interrupted"]
    assert session.at("b").send_message("say: again").state == "finished"


def test_forks_of_several_branches_at_once_have_names_of_their_own(session: Session) -> None:
    for name in ("b", "c"):
        session.fork(name)
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda name: session.at(name).fork(), ("main", "b", "c")))
    assert len(set(made)) == 3
    parents = {branch.name: branch.parent for branch in session.branches()}
    assert [parents[name] for name in made] == ["main", "b", "c"]


def test_limits_are_those_of_the_session_on_every_branch(session: Session) -> None:
    session.fork("b")
    for number in range(6):
        session.at("b" if number % 2 else "main").send_message("say: hello")
    for name in ("main", "b"):
        with pytest.raises(LimitReached):
            session.at(name).send_message("say: more")


@pytest.fixture
def coding(tmp_path: Path) -> Iterator[Session]:
    config = {"session.roles": ["code_interpreter"], **NO_SNAPSHOTS}
    project = make_project(tmp_path / "project", {"execution.zygote": True}, has_table=False)
    with TaskWeaverApp(project, model=lambda _: "", config=config) as app:
        yield app.get_session()


def processes() -> set[int]:
    running = psutil.Process().children(recursive=True)
    return {process.pid for process in running if process.status() != psutil.STATUS_ZOMBIE}


def test_a_released_session_has_no_process_and_gets_its_variables_back(coding: Session) -> None:
    before = processes()
    run(coding.at("main"), "x = [1, 2, 3]")
    coding.fork("b")
    run(coding.at("b"), "x.append(4)")
    at_work = processes()
    coding.release()
    shared = processes()  # the warm process, which is the application's
    assert shared < at_work
    assert len(shared - before) <= 1
    coding.release()
    assert [item.name for item in coding.branches()] == ["main", "b"]
    assert [len(coding.at(name).memory.conversation.rounds) for name in ("main", "b")] == [1, 2]
    assert processes() == shared, "looking starts no kernel"
    assert run(coding.at("b"), "x") == "[1, 2, 3, 4]"
    assert run(coding.at("main"), "x") == "[1, 2, 3]"
    coding.release()
    assert processes() == shared
    coding.stop()
