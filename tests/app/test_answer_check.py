"""Answers of a model in whole rounds: numbers of no outcome are sent back once, then marked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_endpoint import good, serving
from rounds import ALONE, answering, hops, keys_of
from support import Listener, Script, add_table, code_reply, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.console.chat import Chat
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

ORDER = planner_reply("CodeInterpreter", "Sum `Count` in `tiny.csv`.")
CELL = code_reply("table = pd.read_csv('tiny.csv')\ntable.Count.sum() * 1000 + 234")
QUESTION = "what is the total of Count in tiny.csv?"


def play(
    project: Path, replies: list[str], *questions: str, **config: object
) -> tuple[list[Round], Script, Listener]:
    """Ask questions in one session; every reply is needed."""
    script, listener = Script(replies), Listener()
    with TaskWeaverApp(project, model=script, config=config) as app, app.get_session() as session:
        rounds = [session.send_message(text, listener) for text in questions or (QUESTION,)]
    assert len(script.prompts) == len(replies)
    return rounds, script, listener


@pytest.fixture
def project(project: Path) -> Path:
    add_table(project)
    return project


def test_an_invented_number_is_sent_back_and_corrected(project: Path) -> None:
    wrong = planner_reply("User", "The total is 8,324, about 57.1% more.")
    (round_,), script, listener = play(
        project, [ORDER, CELL, wrong, planner_reply("User", "The total is 8,234.")]
    )
    assert hops(round_)[-2:] == ["PP", "PU"]
    note = script.last()
    assert "stand in no outcome of this conversation: 8,324, 57.1%" in note
    assert round_.answer.text == "The total is 8,234."
    assert round_.answer.unsupported_numbers == ()
    assert listener.messages(RoundEventType.round_warning) == []
    (found,) = round_.answer.evidence
    report = round_.post_list[2]
    assert report.get_attachment(AttachmentType.execution_status)
    assert (found.text, found.value, found.post_id) == ("8,234", 8234, report.id)
    assert (found.cell, found.where, found.line, found.original) == (1, "Result", 1, "8234")


def test_numbers_of_the_listing_are_supported(project: Path) -> None:
    rows = "".join(f"p{number},{7000 + number}\n" for number in range(560))
    (project / "data" / "stocks.csv").write_text(f"name,price\n{rows}")
    said = Script([planner_reply("User", "stocks.csv has 560 rows; p2 costs 7002.")])
    with TaskWeaverApp(project, model=said) as app, app.get_session() as session:
        round_ = session.send_message("How many rows has stocks.csv?")
    assert round_.answer.unsupported_numbers == ()
    assert {found.where for found in round_.answer.evidence} == {"Listing"}
    assert len(said.prompts) == 1


def test_a_number_that_is_insisted_on_is_marked_everywhere(project: Path) -> None:
    wrong = planner_reply("User", "The total is 8,324.")
    (round_,), script, listener = play(project, [ORDER, CELL, wrong, wrong])
    assert round_.state == "finished"
    assert round_.answer.unsupported_numbers == ("8,324",)
    assert listener.messages(RoundEventType.round_warning) == [
        "not found in any result of this session: 8,324"
    ]
    assert "answer_check" not in script.last()
    with TaskWeaverApp(project) as app, app.resume_session() as session:
        (again,) = session.memory.conversation.rounds
        assert again.answer == round_.answer


@pytest.mark.parametrize(
    ("question", "answer", "config"),
    [
        ("tell me a joke", "1,000 engineers walk into 3.5 bars.", {}),
        (QUESTION, "It is 4711.", {"answers.check": False}),
        (QUESTION, "It is 4711.", {"planner.max_retry_count": 0}),
    ],
)
def test_nothing_is_sent_back_where_it_makes_no_sense(
    project: Path, question: str, answer: str, config: dict[str, object]
) -> None:
    (round_,), _, _ = play(project, [planner_reply("User", answer)], question, **config)
    assert round_.answer.text == answer
    marked = ("4711",) if "planner.max_retry_count" in config else ()
    assert round_.answer.unsupported_numbers == marked


def test_a_session_without_a_planner_is_checked_too(project: Path) -> None:
    wrong, right = (code_reply(f"It is {n}.", "text") for n in (4711, 8234))
    (_, round_), script, _ = play(project, [CELL, wrong, right], QUESTION, "and?", **ALONE)
    assert "stand in no result of this conversation: 4711" in script.last()
    assert round_.answer.text == "It is 8234."
    assert round_.answer.evidence[0].cell == 1


def test_the_console_and_json_name_what_is_unsupported(project: Path) -> None:
    wrong = planner_reply("User", "The total is 8,324.")
    replies = map(good, (ORDER, CELL, wrong, wrong))
    with serving(answering(*replies)) as endpoint:
        file = project / "taskweaver_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | keys_of(endpoint.url)))
        run = CliRunner().invoke(
            commands, ["--trust", "-p", str(project), "--json", "-m", QUESTION]
        )
    facts = json.loads(run.stdout)
    assert facts["unsupported_numbers"] == ["8,324"]
    assert facts["answer"] == "The total is 8,324."
    assert "Planner withdraws its answer: not found in any result: 8,324" in run.stderr
    warning = "not found in any result of this session: 8,324"
    assert warning in run.stderr.rpartition("The total is 8,324.")[2]
    with TaskWeaverApp(project) as app:
        shown = io.StringIO()
        Chat(app, PlainSurface(shown), lambda app, _: app.resume_session())
    assert warning in shown.getvalue().rpartition("The total is 8,324.")[2]
