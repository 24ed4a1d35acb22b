"""The switches that hold things back: with each one on, the forbidden thing does not happen."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from kept_sessions import KeptSessions
from live_folders import paths_below
from sizes import some
from support import Listener, Script, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.module.confirmation import (
    AnsweredElsewhere,
    Confirmation,
    ConfirmationRequest,
    EditedContent,
)
from taskweaver.module.events import PostEventType, RoundEventType, TaskWeaverEvent
from taskweaver.session.errors import LimitReached
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

ALONE: dict[str, Any] = {"session.roles": ["code_interpreter"]}
VERIFIED = {"code_interpreter.code_verification_on": True}
CONFIRMED = {"code_interpreter.require_confirmation": True}
MARK = "open('mark', 'w').write('ran')"


class Person:
    """A handler with its answers ready."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.requests: list[ConfirmationRequest] = []

    def request_confirmation(self, request: ConfirmationRequest, timeout_s: float) -> Any:
        assert timeout_s > 0
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ask(folder: Path, config: dict[str, Any], *cells: str, handler: Any = None) -> list[Round]:
    """Have each cell written in a round of its own; return the rounds."""
    script = Script([code_reply(cell) for cell in cells])
    project = make_project(folder / "project", has_table=False)
    with TaskWeaverApp(project, model=script, config=ALONE | config) as app:
        session = app.get_session()
        session.event_emitter.confirmation_handler = handler
        return [session.send_message("go") for _ in cells]


def go_on(
    kept: KeptSessions, config: dict[str, Any], *cells: str, handler: Any = None
) -> tuple[list[Round], Script, list[Path]]:
    """Have cells written in rounds of a session that goes on; return the marks they left, too."""
    script = Script([code_reply(cell) for cell in cells])
    session = kept.scripted(script, **ALONE, **config)
    session.event_emitter.confirmation_handler = handler
    return [session.send_message("go") for _ in cells], script, marks(session.workspace)


def marks(folder: Path) -> list[Path]:
    return paths_below(folder, "mark")


def test_code_that_breaks_the_policy_does_not_run_and_is_sent_back(tmp_path: Path) -> None:
    bad = code_reply(f"import subprocess\n{MARK}")
    script = Script([bad, code_reply("'fine'")])
    project = make_project(tmp_path / "project", has_table=False)
    with TaskWeaverApp(project, model=script, config=ALONE | VERIFIED) as app:
        round_ = app.get_session().send_message("go")
    assert marks(tmp_path) == []
    first, second = round_.post_list[1:]
    assert first.get_attachment(AttachmentType.verification)[0].content == "INCORRECT"
    assert "importing 'subprocess' is not allowed" in first.message
    assert second.get_attachment(AttachmentType.verification)[0].content == "CORRECT"
    assert "fine" in second.message
    assert "Do not import ctypes, subprocess" in str(script.prompts[0][0]["content"])
    assert "importing 'subprocess' is not allowed" in script.last()


def test_where_nobody_can_be_asked_nothing_runs(kept_sessions: KeptSessions) -> None:
    (round_,), _, left = go_on(kept_sessions, CONFIRMED, MARK)
    assert left == []
    assert "no confirmation handler" in round_.post_list[-1].message
    assert "did not allow" not in round_.post_list[-1].message


@pytest.mark.parametrize(
    "answer", some([Confirmation.no, None, True, "yes", ValueError("broken")], 3)
)
def test_only_a_yes_is_a_yes(kept_sessions: KeptSessions, answer: object) -> None:
    (round_,), _, left = go_on(kept_sessions, CONFIRMED, MARK, handler=Person(answer))
    assert left == []
    is_refused = "did not allow" in round_.post_list[-1].message
    assert is_refused == (answer is Confirmation.no)


def test_a_yes_is_for_this_code_and_always_for_its_kind(tmp_path: Path) -> None:
    person = Person(Confirmation.yes, Confirmation.always, Confirmation.no)
    cells = ("a = 1", "a = 2", "a = 3", f"!echo x > mark\n{MARK}")
    rounds = ask(tmp_path, CONFIRMED, *cells, handler=person)
    assert [sorted(request.kinds) for request in person.requests] == [
        ["code"], ["code"], ["code", "shell"],
    ]  # fmt: skip
    assert person.requests[1].diff().endswith("-a = 1\n+a = 2")
    assert marks(tmp_path) == []
    assert "did not allow" in rounds[3].post_list[-1].message


def test_a_person_may_change_the_code(kept_sessions: KeptSessions) -> None:
    person = Person(EditedContent("a = 'by hand'\na"), Confirmation.yes)
    rounds, _, _ = go_on(kept_sessions, CONFIRMED, "a = 1", "b = 2", handler=person)
    post = rounds[0].post_list[-1]
    assert post.get_attachment(AttachmentType.reply_content)[0].content == "a = 'by hand'\na"
    assert "The user changed this code before it ran." in post.message
    assert "by hand" in post.message
    assert person.requests[1].diff().splitlines()[-3:] == ["-a = 'by hand'", "-a", "+b = 2"]


def test_the_author_of_an_order_is_shown_the_code_that_a_person_changed(tmp_path: Path) -> None:
    script = Script(
        [planner_reply("CodeInterpreter", "count", code="a = 1"), planner_reply("User", "done")]
    )
    with TaskWeaverApp(
        make_project(tmp_path / "p", has_table=False), model=script, config=CONFIRMED
    ) as app:
        session, listener = app.get_session(), Listener()
        session.event_emitter.confirmation_handler = Person(EditedContent("a = 'by hand'\na"))
        session.send_message("go", listener)
    assert "The user changed this code before it ran." in script.last()
    assert "a = 'by hand'" in script.last()
    (told,) = [e for e in listener.events if e.t is PostEventType.post_confirmation_response]
    assert (told.msg, told.extra["approved"]) == ("yes", True)
    assert told.extra["code"] == "a = 'by hand'\na"
    assert codes_shown(listener.events) == ["a = 1", "a = 'by hand'\na"]  # the order, what ran


def codes_shown(events: list[TaskWeaverEvent]) -> list[str]:
    """Return the codes that a reader of the events has at the end."""
    texts: dict[str, str] = {}
    for event in events:
        if event.extra.get("type") is AttachmentType.reply_content:
            before = "" if "replaces" in event.extra else texts.get(event.extra["id"], "")
            texts[event.extra["id"]] = before + event.msg
    return list(texts.values())


def test_a_policy_holds_for_what_a_person_wrote(tmp_path: Path) -> None:
    person = Person(EditedContent(f"import subprocess\n{MARK}"))
    config = CONFIRMED | VERIFIED | {"code_interpreter.max_retry_count": 0}
    (round_,) = ask(tmp_path, config, "a = 1", handler=person)
    assert marks(tmp_path) == []
    assert "importing 'subprocess' is not allowed" in round_.post_list[-1].message


def test_an_answer_comes_from_another_thread_in_time_or_is_a_no(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", has_table=False)
    script = Script([code_reply(MARK), code_reply(MARK)])
    config = ALONE | CONFIRMED | {"code_interpreter.confirmation_timeout_s": 1.0}
    with TaskWeaverApp(project, model=script, config=config) as app:
        session, listener, elsewhere = app.get_session(), Listener(), AnsweredElsewhere()
        session.event_emitter.confirmation_handler = elsewhere
        late = session.send_message("go")
        assert "no person answered" in late.post_list[-1].message
        assert marks(tmp_path) == []
        ids = _answered(session, listener, elsewhere)
    assert len(marks(tmp_path)) == 1
    assert not elsewhere.provide_confirmation(ids[0], Confirmation.yes)
    kinds = [event.t for event in listener.events if "confirmation" in event.t.value]
    assert kinds == [
        PostEventType.post_confirmation_request, PostEventType.post_confirmation_response
    ]  # fmt: skip


def _answered(session: Session, listener: Listener, elsewhere: AnsweredElsewhere) -> list[str]:
    """Have a round answered by another thread, after a wrong answer; return the ids."""
    ids: list[str] = []

    def answer() -> None:
        request = elsewhere.wait_for_request(10)
        assert request is not None
        ids.append(request.id)
        assert not elsewhere.provide_confirmation("confirm-other", Confirmation.yes)
        assert elsewhere.provide_confirmation(request.id, Confirmation.yes)
        assert not elsewhere.provide_confirmation(request.id, Confirmation.no)  # it has its answer

    thread = threading.Thread(target=answer)
    thread.start()
    session.send_message("go", listener)
    thread.join()
    return ids


def spender(replies: int) -> Script:
    """Return a model whose replies spend tokens, and need no kernel."""
    return Script([code_reply("word " * 50, "text")] * replies)


def test_a_round_stops_at_its_tokens_and_the_next_goes_on(tmp_path: Path) -> None:
    failing = [code_reply("1 / 0")] * 2
    config = ALONE | {"limits.round_tokens": 100}
    with TaskWeaverApp(
        make_project(tmp_path / "p", has_table=False), model=Script(failing), config=config
    ) as app:
        session = app.get_session()
        for _ in failing:
            listener = Listener()
            round_ = session.send_message("go", listener)
            assert round_.state == "failed"
            (reason,) = listener.messages(RoundEventType.round_error)
            assert "limits.round_tokens is 100" in reason


@pytest.mark.parametrize(
    ("limit", "part"),
    [
        ({"limits.session_tokens": 10}, "tokens (limits.session_tokens)"),
        ({"limits.session_rounds": 1}, "1 rounds (limits.session_rounds)"),
        (
            {"limits.session_cost": 1e-9, "llm.prompt_price": 1.0, "llm.completion_price": 1.0},
            "(limits.session_cost)",
        ),
    ],
)
def test_a_session_stops_at_its_limit_until_it_is_extended(
    tmp_path: Path, limit: dict[str, Any], part: str
) -> None:
    project = make_project(tmp_path / "project", has_table=False)
    with TaskWeaverApp(project, model=spender(2), config=ALONE | limit) as app:
        session = app.get_session()
        assert session.send_message("go").state == "finished"
        with pytest.raises(LimitReached) as caught:
            session.send_message("go")
        assert part in str(caught.value)
        assert "/continue" in str(caught.value)
        assert len(session.memory.conversation.rounds) == 1
        for _ in range(1 if "limits.session_rounds" in limit else 1000):
            session.extend_limits()
        if "limits.session_cost" not in limit:
            assert session.send_message("go").state == "finished"
