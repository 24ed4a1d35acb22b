"""Whole rounds with a model that is a function: plans, cells, orders, and how a round ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rounds import hops, play_script
from support import Listener, Script, add_table, code_reply, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ORDER_KEY, successful_cells
from taskweaver.module.event_emitter import PostEventType, RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

KIND = AttachmentType
UNUSABLE = planner_reply("Nobody", "no")
DONE = planner_reply("User", "ok")


def cell(code: str) -> str:
    fields = {"thought": "", "plan": "", "send_to": "CodeInterpreter", "message": "look"}
    return json.dumps({"response": fields | {"code": code}})


def test_a_question_with_its_file_takes_two_calls(project: Path) -> None:
    add_table(project)
    code, question = "pd.read_csv('tiny.csv')['Count'].sum()", "the sum of Count in tiny.csv?"
    replies = [cell(code), planner_reply("User", "The sum is 8.")]
    round_, script, listener = play_script(project, replies, question)
    assert round_.state == "finished"
    assert hops(round_) == ["UP", "PC", "CP", "PU"]
    assert "files added: tiny.csv." in round_.user_query
    order, report = round_.post_list[1:3]
    for post in (order, report):
        assert [item.content for item in post.get_attachment(KIND.reply_content)] == [code]
    (status,) = report.get_attachment(KIND.execution_status)
    assert (status.content, status.extra[ORDER_KEY]) == ("SUCCESS", order.id)
    assert [ran.code for ran in successful_cells([round_])] == [code]
    assert "```\n8\n```" in script.last(1)
    assert code not in script.last(1)  # its author knows it
    system, request = (str(message["content"]) for message in script.prompts[0])
    assert "read_table" in system
    assert request.index('"tiny.csv", 2 rows, columns') < request.index(question)
    assert listener.messages(RoundEventType.round_end) == [""]


def test_cells_that_fail_go_back_to_their_author_and_variables_are_in_the_situation(
    project: Path,
) -> None:
    orders = [cell("1 / 0"), cell("price = 41.5; print('working')"), DONE, cell("del price"), DONE]
    script, listener = Script([*orders, DONE]), Listener()
    with TaskWeaverApp(project, model=script) as app, app.get_session() as session:
        rounds = [session.send_message(text, listener) for text in ("first", "second", "third")]
    assert hops(rounds[0]) == ["UP", "PC", "CP", "PC", "CP", "PU"]
    assert "ZeroDivisionError" in script.last(1)
    assert "working" in "".join(listener.messages(PostEventType.post_execution_output))
    assert "- price: 41.5" in script.last(3)
    assert "- gone: price" in script.last(5)


def test_the_worker_sees_task_plan_and_request_and_only_the_newest_turn_has_them(
    project: Path,
) -> None:
    replies = [
        planner_reply("CodeInterpreter", "first task"), code_reply("a = 1"),
        planner_reply("CodeInterpreter", "second task", current_plan_step="2. more"),
        code_reply("a + 1"), planner_reply("User", "2"),
    ]  # fmt: skip
    _, script, _ = play_script(project, replies, "the request")
    second = [str(m["content"]) for m in script.prompts[3]]
    newest = second[-1]
    assert "## User request\nthe request" in newest
    assert "1. do it" in newest
    assert "## Task\nsecond task" in newest
    assert "## Feedback on the previous code" in newest
    assert "- a: 1" in newest
    assert sum("## User request" in text for text in second) == 1
    assert any("## Task\nfirst task" in text for text in second[:-1])


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (code_reply("1 / 0"), code_reply("2 / 0"), ("The code failed.", "ZeroDivisionError")),
        (code_reply(""), code_reply("x", "poem"), ("No usable code came back", "poem")),
    ],
)
def test_a_worker_that_cannot_mend_its_code_reports_the_failure(
    project: Path, first: str, second: str, told: tuple[str, str]
) -> None:
    end = planner_reply("User", "It cannot be done.", stop="TaskFailure")
    replies = [planner_reply("CodeInterpreter", "go"), first, second, end]
    config = {"code_interpreter.max_retry_count": 1}
    round_, script, _ = play_script(project, replies, **config)
    assert round_.state == "finished"
    assert hops(round_)[2:4] == ["CC", "CP"]
    assert all(words in script.last(3) for words in told)


def test_an_unusable_reply_is_sent_back_and_its_beginning_ends_the_round_in_a_line(
    project: Path,
) -> None:
    garbage = UNUSABLE + '\nHere is "it": \x1b[31m' + "blah " * 400
    replies = [UNUSABLE, garbage, DONE]
    script, listener = Script(replies), Listener()
    with TaskWeaverApp(project, model=script, config={"planner.max_retry_count": 1}) as app:
        session = app.get_session()
        failed = session.send_message("first", listener)
        assert session.send_message("second").state == "finished"
    assert failed.state == "failed"
    assert "could not be used" in script.last(1)
    assert "send_to is 'Nobody'" in script.last(1)
    (reason,) = listener.messages(RoundEventType.round_error)
    assert "2 replies could not be used" in reason
    assert 'The reply began: "{\\"response\\":' in reason
    assert len(reason) < 500
    assert not {"\n", "\x1b"} & set(reason)
    assert failed.post_list[-1].message.startswith("The question was not answered: 2 replies")
    assert "first" not in script.last(2)


def test_a_conversation_that_goes_in_circles_is_nudged_once_and_then_ended(project: Path) -> None:
    circle = [planner_reply("CodeInterpreter", "go"), code_reply("missing_name")]
    config = {"code_interpreter.max_retry_count": 0}
    round_, script, _ = play_script(project, circle * 3, **config)
    assert round_.state == "finished"
    final = round_.post_list[-1]
    assert final.send_to == "User"
    assert [item.content for item in final.get_attachment(KIND.stop)] == ["TaskFailure"]
    assert "missing_name" in final.message
    assert "[Note:" not in script.last(2)
    assert "[Note:" in script.last(4)


def test_roles_that_never_finish_run_into_the_limit(project: Path) -> None:
    def endless() -> Iterator[str]:
        for number in range(100):
            yield planner_reply("CodeInterpreter", f"step {number}")
            yield code_reply(f"'{'x' * number}'", "text", thought=str(number))

    config = {"session.max_internal_chat_round_num": 6}
    round_, _, listener = play_script(project, endless(), **config)
    assert round_.state == "failed"
    assert "6 messages" in listener.messages(RoundEventType.round_error)[0]


def test_without_cells_of_its_own_the_planner_hears_of_the_worker_and_of_no_field_for_code(
    project: Path,
) -> None:
    class Broken:
        def handle(self, _event: object) -> None:
            raise RuntimeError("a listener that raises ends no round")

    script = Script([DONE])
    with TaskWeaverApp(project, model=script, config={"session.leader_writes_code": False}) as app:
        assert app.get_session().send_message("hi", Broken()).state == "finished"
    system = str(script.prompts[0][0]["content"])
    assert "### CodeInterpreter\n" in system
    assert '"code"' not in system


def test_shipped_examples_carry_their_cells_and_teach_no_orders_in_words(project: Path) -> None:
    shutil.copytree(Path("project/examples"), project / "examples")
    for form in ("tools", "json", "fences"):
        script = Script([planner_reply("User", "Hello.")])
        with TaskWeaverApp(project, model=script, config={"llm.form": form}) as app:
            app.get_session().send_message("hello")
        (prompt,) = script.prompts
        text = "\n".join(str(message) for message in prompt)
        assert "## Code\\n```python" not in text
        assert "orders = pd.read_csv" in text
        assert text.count("guests_per_weekday.png") > 1
        calls = [call for message in prompt for call in message.get("tool_calls", [])]
        names = {call["function"]["name"] for call in calls}
        assert names <= {"run_python", "set_plan"}
        assert ("run_python" in names) is (form == "tools")
        assert "### CodeInterpreter" not in str(prompt[0]["content"])
