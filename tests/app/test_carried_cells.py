"""The Planner writes cells itself: posts carry them, and the interpreter runs them as they are."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from kept_sessions import KeptSessions
from sizes import some
from support import Listener, Script, add_table, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.render import RoundView
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.reading.cells import ORDER_KEY, successful_cells
from taskweaver.memory.round import Round

pytestmark = pytest.mark.usefixtures("no_states")

KIND = AttachmentType


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(code: str, intent: str = "look", **fields: str) -> str:
    """Return a reply of the Planner with a cell."""
    usual = {"thought": "", "plan": "", "send_to": "CodeInterpreter"}
    return json.dumps({"response": usual | {"message": intent, "code": code} | fields})


def play(
    project: Path, replies: list[str], message: str = "go", **config: object
) -> tuple[Round, Script, Listener]:
    script, listener = Script(replies), Listener()
    with TaskWeaverApp(project, model=script, config=config) as app, app.get_session() as session:
        round_ = session.send_message(message, event_handler=listener)
    return round_, script, listener


def go_on(kept: KeptSessions, replies: list[str]) -> tuple[Round, Script]:
    """Play a round of a session that goes on."""
    script = Script(replies)
    return kept.scripted(script).send_message("go"), script


def hops(round_: Round) -> list[str]:
    return [f"{post.send_from}>{post.send_to}" for post in round_.post_list]


def only(post: object, kind: AttachmentType) -> str:
    (found,) = post.get_attachment(kind)  # type: ignore[attr-defined]
    return str(found.content)


def test_a_question_with_its_files_takes_two_calls_and_the_report_carries_the_cell(
    project: Path,
) -> None:
    add_table(project)
    code = "pd.read_csv('tiny.csv')['Count'].sum()"
    replies = [cell(code, "sum of Count"), planner_reply("User", "The sum is 8.")]
    round_, script, _ = play(project, replies, "what is the sum of Count in tiny.csv?")
    assert round_.state == "finished"
    assert len(script.prompts) == 2
    assert hops(round_)[1:] == [
        "Planner>CodeInterpreter",
        "CodeInterpreter>Planner",
        "Planner>User",
    ]
    order, report = round_.post_list[1:3]
    assert only(order, KIND.reply_content) == only(report, KIND.reply_content) == code
    assert only(report, KIND.reply_type) == "python"
    (status,) = report.get_attachment(KIND.execution_status)
    assert (status.content, status.extra[ORDER_KEY]) == ("SUCCESS", order.id)
    assert [ran.code for ran in successful_cells([round_])] == [code]
    outcome = script.last(1)
    assert "```\n8\n```" in outcome
    assert code not in outcome  # its author knows it
    check_prompt(script, "what is the sum of Count in tiny.csv?")


def check_prompt(script: Script, question: str) -> None:
    """Check that it has files with their columns and rows, and what a cell may use."""
    system, request = (str(message["content"]) for message in script.prompts[0])
    assert "read_table" in system
    assert request.index('"tiny.csv", 2 rows, columns') < request.index(question)


@pytest.mark.long
def test_variables_of_earlier_rounds_are_in_the_situation(project: Path) -> None:
    script = Script([cell("price = 41.5\nprice"), planner_reply("User", "ok")] * 2)
    with TaskWeaverApp(project, model=script) as app, app.get_session() as session:
        session.send_message("first")
        session.send_message("second")
    request = script.last(2)
    assert "## Variables\n- price: 41.5" in request
    assert request.index("price: 41.5") < request.index("second")


def test_deleted_variables_are_in_no_situation(kept_sessions: KeptSessions) -> None:
    orders = [cell("price = 41.5"), cell("del price"), cell("1 + 1")]
    script = Script([reply for one in orders for reply in (one, planner_reply("User", "ok"))])
    session = kept_sessions.scripted(script)
    for question in ("first", "second", "third"):
        session.send_message(question)
    assert "price: 41.5" in script.last(2)
    assert "- gone: price" in script.last(4)


def test_a_cell_that_fails_goes_back_to_its_author(kept_sessions: KeptSessions) -> None:
    replies = [cell("1 / 0"), cell("1 / 1"), planner_reply("User", "It is 1.0.")]
    round_, script = go_on(kept_sessions, replies)
    assert hops(round_).count("Planner>CodeInterpreter") == 2
    assert hops(round_).count("CodeInterpreter>CodeInterpreter") == 0
    assert "ZeroDivisionError" in script.last(1)


def test_a_refused_cell_goes_back_with_the_rule_it_breaks(project: Path) -> None:
    replies = [cell("import socket"), planner_reply("User", "It may not be done.")]
    config = {
        "code_interpreter.code_verification_on": True,
        "code_interpreter.blocked_modules": ["socket"],
    }
    round_, script, _ = play(project, replies, **config)
    report = round_.post_list[2]
    assert only(report, KIND.verification) == "INCORRECT"
    assert only(report, KIND.reply_content) == "import socket"
    assert not report.get_attachment(KIND.execution_status)
    assert "socket" in script.last(1)
    assert "socket" in str(script.prompts[0][0]["content"])  # the rule stands in the prompt


@pytest.mark.long
def test_a_console_user_sees_the_cell_once(project: Path) -> None:
    shown = io.StringIO()
    view = RoundView(PlainSurface(shown), lambda _branch: project)
    script = Script([cell("7 * 6"), cell("7 * 6"), planner_reply("User", "It is 42.")])
    with TaskWeaverApp(project, model=script) as app, app.get_session() as session:
        session.send_message("go", event_handler=view)
    assert shown.getvalue().count("7 * 6") == 2  # once for each of the two


@pytest.mark.parametrize(
    "config",
    some(
        [{"session.leader_writes_code": False}, {"session.roles": ["planner", "code_interpreter"]}],
        1,
    ),
)
def test_an_order_in_words_is_written_by_the_interpreter(
    project: Path, config: dict[str, object]
) -> None:
    replies = [
        planner_reply("CodeInterpreter", "Multiply 7 by 6."),
        code_reply("7 * 6"),
        planner_reply("User", "42"),
    ]
    round_, script, _ = play(project, replies, **config)
    assert round_.state == "finished"
    assert len(script.prompts) == 3


def test_without_cells_of_its_own_the_planner_hears_of_the_worker(project: Path) -> None:
    config = {"session.leader_writes_code": False}
    script = play(project, [planner_reply("User", "Hello.")], **config)[1]
    system = str(script.prompts[0][0]["content"])
    assert "### CodeInterpreter\n" in system
    assert '"code"' not in system


def test_words_without_any_form_are_the_answer(kept_sessions: KeptSessions) -> None:
    round_, script = go_on(kept_sessions, ["The capital is Paris."])
    assert round_.post_list[-1].message == "The capital is Paris."
    assert len(script.prompts) == 1


def test_code_with_words_after_it_runs_once_its_author_sends_it_alone(
    kept_sessions: KeptSessions,
) -> None:
    fence = "```python\n7 * 6\n```"
    replies = [f"I compute it.\n{fence}\nThe result is forty-one.", fence, "It is 42."]
    round_, script = go_on(kept_sessions, replies)
    assert round_.post_list[-1].message == "It is 42."
    assert [post.message for post in round_.post_list if post.send_to == "User"] == ["It is 42."]
    assert "Nothing ran" in str(script.prompts[1][-1]["content"])


def test_a_prompt_file_of_version_1_orders_in_words(project: Path, tmp_path: Path) -> None:
    packaged = Path("taskweaver/planner/planner_prompt_version_1.yaml")
    own = tmp_path / "own.yaml"
    own.write_text(packaged.read_text().replace("You are the Planner.", "You are Ada."))
    replies = [
        planner_reply("CodeInterpreter", "Multiply."),
        code_reply("7 * 6"),
        planner_reply("User", "42"),
    ]
    config = {"planner.prompt_file_path": str(own)}
    round_, script, _ = play(project, replies, **config)
    assert round_.state == "finished"
    assert "You are Ada." in str(script.prompts[0][0]["content"])
    assert "plan_reasoning" in str(script.prompts[0][0]["content"])
