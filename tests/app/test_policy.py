"""The switches that hold things back: with each one on, the forbidden thing does not happen."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from rounds import ALONE, Person, marks, write
from support import Listener, Script, code_reply, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.confirmation import AnsweredElsewhere, Confirmation, EditedContent
from taskweaver.module.event_emitter import PostEventType, RoundEventType, TaskWeaverEvent
from taskweaver.session.errors import LimitReached

pytestmark = pytest.mark.usefixtures("no_states")

VERIFIED = {"code_interpreter.code_verification_on": True}
CONFIRMED = {"code_interpreter.require_confirmation": True}
MARK = "open('mark', 'w').write('ran')"


def test_code_that_breaks_the_policy_does_not_run_and_is_sent_back(project: Path) -> None:
    cells = (f"import subprocess\n{MARK}", "'fine'")
    ((round_,), script, _) = write(project, *cells, rounds=1, **VERIFIED)
    assert marks(project) == []
    first, second = round_.post_list[1:]
    assert first.get_attachment(AttachmentType.verification)[0].content == "INCORRECT"
    assert "importing 'subprocess' is not allowed" in first.message
    assert second.get_attachment(AttachmentType.verification)[0].content == "CORRECT"
    assert "fine" in second.message
    assert "Do not import ctypes, subprocess" in str(script.prompts[0][0]["content"])
    assert "importing 'subprocess' is not allowed" in script.last()


def test_only_a_yes_is_a_yes_and_where_nobody_can_be_asked_nothing_runs(project: Path) -> None:
    person = Person(Confirmation.no, None, "yes")
    said = write(project, *[MARK] * 3, handler=person, **CONFIRMED).said
    said += write(project, MARK, **CONFIRMED).said
    assert marks(project) == []
    assert ["did not allow" in text for text in said] == [True, False, False, False]
    assert "no confirmation handler" in said[3]


def test_a_yes_is_for_this_code_and_always_for_its_kind(project: Path) -> None:
    person = Person(Confirmation.yes, Confirmation.always, Confirmation.no)
    cells = ("a = 1", "a = 2", "a = 3", f"!echo x > mark\n{MARK}")
    said = write(project, *cells, handler=person, **CONFIRMED).said
    assert [sorted(request.kinds) for request in person.requests] == [
        ["code"], ["code"], ["code", "shell"],
    ]  # fmt: skip
    assert person.requests[1].diff().endswith("-a = 1\n+a = 2")
    assert marks(project) == []
    assert "did not allow" in said[3]


def test_a_person_may_change_the_code_and_its_author_is_shown_that(project: Path) -> None:
    script, listener = Script([order("a = 1"), DONE, order("b = 2"), DONE]), Listener()
    person = Person(EditedContent("a = 'by hand'\na"), Confirmation.yes)
    with TaskWeaverApp(project, model=script, config=CONFIRMED) as app:
        session = app.get_session()
        session.event_emitter.confirmation_handler = person
        round_ = session.send_message("go", listener)
        events = list(listener.events)
        session.send_message("go on", listener)
    post = round_.post_list[2]
    assert post.get_attachment(AttachmentType.reply_content)[0].content == "a = 'by hand'\na"
    assert "The user changed this code before it ran." in script.last(1)
    assert "a = 'by hand'" in script.last(1)
    (told,) = [e for e in events if e.t is PostEventType.post_confirmation_response]
    assert (told.msg, told.extra["approved"]) == ("yes", True)
    assert told.extra["code"] == "a = 'by hand'\na"
    assert codes_shown(events) == ["a = 1", "a = 'by hand'\na"]  # the order, what ran
    assert person.requests[1].diff().splitlines()[-3:] == ["-a = 'by hand'", "-a", "+b = 2"]


DONE = planner_reply("User", "done")


def order(code: str) -> str:
    return planner_reply("CodeInterpreter", "count", code=code)


def codes_shown(events: list[TaskWeaverEvent]) -> list[str]:
    """Return the codes that a reader of the events has at the end."""
    texts: dict[str, str] = {}
    for event in events:
        if event.extra.get("type") is AttachmentType.reply_content:
            before = "" if "replaces" in event.extra else texts.get(event.extra["id"], "")
            texts[event.extra["id"]] = before + event.msg
    return list(texts.values())


def test_a_policy_holds_for_what_a_person_wrote(project: Path) -> None:
    person = Person(EditedContent(f"import subprocess\n{MARK}"))
    config = CONFIRMED | VERIFIED | {"code_interpreter.max_retry_count": 0}
    (said,) = write(project, "a = 1", handler=person, **config).said
    assert marks(project) == []
    assert "importing 'subprocess' is not allowed" in said


def test_an_answer_comes_from_another_thread_in_time_or_is_a_no(project: Path) -> None:
    script = Script([code_reply(MARK), code_reply(MARK)])
    config = ALONE | CONFIRMED | {"code_interpreter.confirmation_timeout_s": 1.0}
    with TaskWeaverApp(project, model=script, config=config) as app:
        session, listener, elsewhere = app.get_session(), Listener(), AnsweredElsewhere()
        session.event_emitter.confirmation_handler = elsewhere
        late = session.send_message("go")
        assert "no person answered" in late.post_list[-1].message
        assert marks(project) == []
        ids: list[str] = []

        def answer() -> None:
            with elsewhere._changed:
                elsewhere._changed.wait_for(lambda: elsewhere.requests, 10)
                ids.extend(elsewhere.requests)
            assert not elsewhere.provide_confirmation("confirm-other", Confirmation.yes)
            assert elsewhere.provide_confirmation(ids[0], Confirmation.yes)
            assert not elsewhere.provide_confirmation(ids[0], Confirmation.no)  # it has its answer

        thread = threading.Thread(target=answer)
        thread.start()
        session.send_message("go", listener)
        thread.join()
    assert len(marks(project)) == 1
    assert not elsewhere.provide_confirmation(ids[0], Confirmation.yes)
    kinds = [event.t for event in listener.events if "confirmation" in event.t.value]
    assert kinds == [
        PostEventType.post_confirmation_request, PostEventType.post_confirmation_response
    ]  # fmt: skip


def test_a_round_stops_at_its_tokens_and_the_next_goes_on(project: Path) -> None:
    rounds, _, listener = write(project, "1 / 0", "1 / 0", **{"limits.round_tokens": 100})
    assert [round_.state for round_ in rounds] == ["failed"] * 2
    reasons = listener.messages(RoundEventType.round_error)
    assert ["limits.round_tokens is 100" in reason for reason in reasons] == [True] * 2


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
    project: Path, limit: dict[str, Any], part: str
) -> None:
    spender = Script([code_reply("word " * 50, "text")] * 2)
    with TaskWeaverApp(project, model=spender, config=ALONE | limit) as app:
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
