"""Whole rounds: scripted model, real roles, real kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_sessions import KeptSessions
from support import Listener, Script, add_table, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.module.events import PostEventType, RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

UNUSABLE = planner_reply("Nobody", "no")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def play(
    project: Path, replies: list[str], message: str = "go", **config: object
) -> tuple[Round, Script, Listener]:
    """Play one round with a scripted model."""
    script, listener = Script(replies), Listener()
    with TaskWeaverApp(project, model=script, config=config) as app, app.get_session() as session:
        round_ = session.send_message(message, event_handler=listener)
    return round_, script, listener


def go_on(
    kept: KeptSessions, replies: list[str], message: str = "go", **config: object
) -> tuple[Round, Script, Listener]:
    """Play one round of a session that goes on, with a scripted model."""
    script, listener = Script(replies), Listener()
    session = kept.scripted(script, **config)
    return session.send_message(message, event_handler=listener), script, listener


def hops(round_: Round) -> list[str]:
    return [f"{post.send_from}>{post.send_to}" for post in round_.post_list]


def test_a_question_is_planned_computed_and_answered(project: Path) -> None:
    add_table(project)
    round_, script, listener = play(
        project,
        [
            planner_reply("CodeInterpreter", "Sum `Count` in `tiny.csv`."),
            code_reply("pd.read_csv('tiny.csv')['Count'].sum()"),
            planner_reply("User", "The sum is 8."),
        ],
        "what is the sum of Count in tiny.csv?",
    )
    assert round_.state == "finished"
    assert hops(round_) == [
        "User>Planner",
        "Planner>CodeInterpreter",
        "CodeInterpreter>Planner",
        "Planner>User",
    ]
    assert "files added: tiny.csv." in round_.user_query
    report = script.last(2)
    assert "The code ran to its end." in report
    assert "## Result\n```\n8\n```" in report
    assert listener.messages(RoundEventType.round_end) == [""]


def test_the_worker_sees_task_plan_and_request_and_only_the_newest_turn_has_them(
    kept_sessions: KeptSessions,
) -> None:
    _, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", "first task"),
            code_reply("a = 1"),
            planner_reply("CodeInterpreter", "second task", current_plan_step="2. more"),
            code_reply("a + 1"),
            planner_reply("User", "2"),
        ],
        "the request",
    )
    second = [str(m["content"]) for m in script.prompts[3]]
    newest = second[-1]
    assert "## User request\nthe request" in newest
    assert "1. do it" in newest
    assert "## Task\nsecond task" in newest
    assert "## Feedback on the previous code" in newest
    assert "- a: 1" in newest
    assert sum("## User request" in text for text in second) == 1
    assert any("## Task\nfirst task" in text for text in second[:-1])


def test_failing_code_is_sent_back_with_its_error_and_mended(kept_sessions: KeptSessions) -> None:
    round_, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", "divide"),
            code_reply("1 / 0"),
            code_reply("1 / 2"),
            planner_reply("User", "0.5"),
        ],
    )
    assert hops(round_)[2:4] == ["CodeInterpreter>CodeInterpreter", "CodeInterpreter>Planner"]
    assert "ZeroDivisionError" in script.last(2)
    assert "## Correction" in script.last(2)


def test_a_worker_that_cannot_mend_its_code_reports_the_failure(
    kept_sessions: KeptSessions,
) -> None:
    round_, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", "divide"),
            code_reply("1 / 0"),
            code_reply("2 / 0"),
            planner_reply("User", "It cannot be done.", stop="TaskFailure"),
        ],
        **{"code_interpreter.max_retry_count": 1},
    )
    assert round_.state == "finished"
    assert "The code failed." in script.last(3)
    assert "ZeroDivisionError" in script.last(3)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (planner_reply("Nobody", "hi"), "send_to is 'Nobody'"),
        (planner_reply("CodeInterpreter", "  "), "message is empty"),
        (planner_reply("CodeInterpreter", "go")[:40], ""),
    ],
)
def test_an_unusable_plan_is_sent_back_once_with_the_reason(
    kept_sessions: KeptSessions, bad: str, reason: str
) -> None:
    round_, script, _ = go_on(kept_sessions, [bad, planner_reply("User", "here you are")])
    assert round_.state == "finished"
    assert hops(round_) == ["User>Planner", "Planner>Planner", "Planner>User"]
    assert "could not be used" in script.last(1)
    assert reason in script.last(1)


def test_replies_that_stay_unusable_end_the_round_with_one_line(project: Path) -> None:
    round_, _, listener = play(project, [UNUSABLE] * 3, **{"planner.max_retry_count": 2})
    assert round_.state == "failed"
    (reason,) = listener.messages(RoundEventType.round_error)
    assert "3 replies could not be used" in reason
    assert "send_to is 'Nobody'" in reason
    assert 'The reply began: "{' in reason
    assert "\n" not in reason
    last = round_.post_list[-1]
    assert last.send_to == "User"
    assert last.message.startswith("The question was not answered: 3 replies could not be used")


def test_the_error_of_unusable_replies_shows_their_beginning_in_a_line(project: Path) -> None:
    garbage = UNUSABLE + '\nHere is "it": \x1b[31m' + "blah " * 400
    round_, _, listener = play(project, [garbage], **{"planner.max_retry_count": 0})
    assert round_.state == "failed"
    (reason,) = listener.messages(RoundEventType.round_error)
    assert 'The reply began: "{\\"response\\":' in reason
    assert len(reason) < 500
    assert "\n" not in reason
    assert "\x1b" not in reason


def test_code_replies_that_stay_unusable_are_reported_to_the_planner(
    kept_sessions: KeptSessions,
) -> None:
    round_, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", "go"),
            code_reply("", thought="no code today"),
            code_reply("x", reply_type="poem"),
            planner_reply("User", "sorry", stop="TaskFailure"),
        ],
        **{"code_interpreter.max_retry_count": 1},
    )
    assert round_.state == "finished"
    assert "No usable code came back" in script.last(3)
    assert "poem" in script.last(3)


def test_a_worker_may_answer_in_words(kept_sessions: KeptSessions) -> None:
    round_, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", "sing"),
            code_reply("I cannot sing.", reply_type="text"),
            planner_reply("User", "It cannot sing."),
        ],
    )
    assert "From: CodeInterpreter\nMessage: I cannot sing." in script.last(2)
    assert not round_.post_list[2].get_attachment(AttachmentType.execution_status)


@pytest.mark.long
def test_a_fence_around_code_is_taken_off(kept_sessions: KeptSessions) -> None:
    _, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", "go"),
            code_reply("```python\n40 + 2\n```"),
            planner_reply("User", "42"),
        ],
    )
    assert "```\n42\n```" in script.last(2)


def test_a_conversation_that_goes_in_circles_is_nudged_once_and_then_ended(project: Path) -> None:
    circle = [planner_reply("CodeInterpreter", "go"), code_reply("missing_name")]
    round_, script, _ = play(project, circle * 3, **{"code_interpreter.max_retry_count": 0})
    assert round_.state == "finished"
    final = round_.post_list[-1]
    assert final.send_to == "User"
    assert [item.content for item in final.get_attachment(AttachmentType.stop)] == ["TaskFailure"]
    assert "missing_name" in final.message
    assert "[Note:" not in script.last(2)
    assert "[Note:" in script.last(4)


def test_roles_that_never_finish_run_into_the_limit(project: Path) -> None:
    def endless() -> Iterator[str]:
        for number in range(100):
            yield planner_reply("CodeInterpreter", f"step {number}")
            yield code_reply(f"'{'x' * number}'", "text", thought=str(number))

    script, listener = Script(endless()), Listener()
    config = {"session.max_internal_chat_round_num": 6}
    with TaskWeaverApp(project, model=script, config=config) as app:
        round_ = app.get_session().send_message("go", event_handler=listener)
    assert round_.state == "failed"
    assert "6 messages" in listener.messages(RoundEventType.round_error)[0]


def test_a_session_goes_on_after_a_failed_round_which_later_prompts_do_not_show(
    project: Path,
) -> None:
    script = Script([UNUSABLE, planner_reply("User", "fine")])
    config = {"planner.max_retry_count": 0}
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        assert session.send_message("first").state == "failed"
        assert session.send_message("second").state == "finished"
    assert not any("first" in str(m["content"]) for m in script.prompts[-1][-1:])


@pytest.mark.long
def test_without_a_planner_the_only_role_answers_the_user(project: Path) -> None:
    round_, script, _ = play(
        project,
        [code_reply("6 * 7")],
        "what is 6*7?",
        **{"session.roles": ["code_interpreter"]},
    )
    assert hops(round_) == ["User>CodeInterpreter", "CodeInterpreter>User"]
    assert "## Task\nwhat is 6*7?" in script.last()
    assert "## User request" not in script.last()
    assert "42" in round_.post_list[-1].message


@pytest.mark.long
def test_variables_stay_between_rounds_and_the_next_prompt_shows_them(project: Path) -> None:
    script = Script([code_reply("answer = 41"), code_reply("answer + 1")])
    config = {"session.roles": ["code_interpreter"]}
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        session.send_message("remember 41")
        round_ = session.send_message("add one")
    assert "- answer: 41" in script.last()
    assert "42" in round_.post_list[-1].message


def test_what_code_prints_is_heard_while_it_runs(kept_sessions: KeptSessions) -> None:
    _, _, listener = go_on(
        kept_sessions, [code_reply("print('working')")], **{"session.roles": ["code_interpreter"]}
    )
    assert "working" in "".join(listener.messages(PostEventType.post_execution_output))


def test_text_from_outside_is_never_a_template(kept_sessions: KeptSessions) -> None:
    hostile = "{PLAN} {MESSAGE} {ROLE_NAME:>999999999} {0} {{x}} %s ${y}"
    round_, script, _ = go_on(
        kept_sessions,
        [
            planner_reply("CodeInterpreter", hostile, plan=hostile),
            code_reply(hostile, reply_type="text", thought=hostile),
            planner_reply("User", hostile),
        ],
        hostile,
    )
    assert round_.post_list[-1].message == hostile
    assert f"## Task\n{hostile}" in script.last(1)
    assert f"Message: {hostile}" in script.last(2)


def test_a_listener_that_raises_does_not_end_the_round(project: Path) -> None:
    class Broken:
        def handle(self, _event: object) -> None:
            raise RuntimeError("listener")

    script = Script([planner_reply("User", "hello")])
    with TaskWeaverApp(project, model=script) as app:
        assert app.get_session().send_message("hi", event_handler=Broken()).state == "finished"


@pytest.mark.long
def test_two_apps_with_their_sessions_do_not_meet(project: Path, tmp_path: Path) -> None:
    other = make_project(tmp_path / "other", has_table=False)

    def model(messages: list[ChatMessage]) -> str:
        return planner_reply("User", str(messages[-1]["content"]).splitlines()[-1])

    with TaskWeaverApp(project, model=model) as one, TaskWeaverApp(other, model=model) as two:
        first, second = one.get_session(), two.get_session()
        first.send_message("for the first")
        second.send_message("for the second")
        assert len(first.memory.conversation.rounds) == 1
        assert "second" in second.memory.conversation.rounds[0].user_query


def test_experiences_follow_the_request_every_time(project: Path) -> None:
    folder = project / "experience"
    folder.mkdir()
    for name, text in (("units", "Sales are in thousands."), ("plots", "Charts have a grid.")):
        lines = f"exp_id: {name}\nexperience_text: {text}\n"
        (folder / f"handcrafted_exp_{name}.yaml").write_text(lines)
    script = Script([planner_reply("User", "ok")] * 3)
    with TaskWeaverApp(project, model=script, config={"planner.use_experience": True}) as app:
        session = app.get_session()
        for request in ("total sales", "draw charts", "tell a joke"):
            session.send_message(request)
    shown = [str(prompt[0]["content"]) for prompt in script.prompts]
    assert ["Sales are in thousands." in text for text in shown] == [True, False, False]
    assert ["Charts have a grid." in text for text in shown] == [False, True, False]
