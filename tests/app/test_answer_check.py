"""Answers of a model in whole rounds: numbers of no outcome are sent back once, then marked."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_endpoint import Call, good, serving
from support import Listener, Script, add_table, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.console.chat import Chat
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.utils.ids import create_id

pytestmark = pytest.mark.usefixtures("no_states")

ORDER = planner_reply("CodeInterpreter", "Sum `Count` in `tiny.csv`.")
CELL = code_reply("table = pd.read_csv('tiny.csv')\ntable.Count.sum() * 1000 + 234")
ALONE = {"session.roles": ["code_interpreter"]}
QUESTION = "what is the total of Count in tiny.csv?"


class Stage:
    """Conversations in one project with a warm process, or in a project of their own.

    Attributes:
        app: The application of the warm process.
        folder: Folder of the projects.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._script = Script([])
        warm = {"execution.zygote": True}
        project = make_project(folder / "warm")
        self.app = TaskWeaverApp(project, model=lambda chat: self._script(chat), config=warm)

    def play(
        self, replies: list[str], *questions: str, **config: object
    ) -> tuple[list[Round], Script, Listener]:
        """Ask questions in one session; every reply is needed."""
        self._script, listener = Script(replies), Listener()
        with ExitStack() as stack:
            app = self.app
            if config:
                project = make_project(self.folder / create_id())
                app = TaskWeaverApp(project, model=self._script, config=config)
                stack.enter_context(app)
            session = stack.enter_context(app.get_session())
            rounds = [session.send_message(text, listener) for text in questions or (QUESTION,)]
        assert len(self._script.prompts) == len(replies)
        return rounds, self._script, listener


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("answers"))
    with stage.app:
        with stage.app.get_session() as session:
            session.run_code("1")  # starts what all sessions share
        yield stage


def hops(round_: Round) -> list[str]:
    return [f"{post.send_from}>{post.send_to}" for post in round_.post_list]


def test_an_invented_number_is_sent_back_and_corrected(stage: Stage) -> None:
    wrong = planner_reply("User", "The total is 8,324, about 57.1% more.")
    (round_,), script, listener = stage.play(
        [ORDER, CELL, wrong, planner_reply("User", "The total is 8,234.")]
    )
    assert hops(round_)[-2:] == ["Planner>Planner", "Planner>User"]
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


def test_numbers_of_the_listing_are_supported(stage: Stage) -> None:
    project = make_project(stage.folder / "listed", has_table=False)
    rows = "".join(f"p{number},{7000 + number}\n" for number in range(560))
    (project / "data" / "stocks.csv").write_text(f"name,price\n{rows}")
    said = Script([planner_reply("User", "stocks.csv has 560 rows; p2 costs 7002.")])
    with TaskWeaverApp(project, model=said) as app, app.get_session() as session:
        round_ = session.send_message("How many rows has stocks.csv?")
    assert round_.answer.unsupported_numbers == ()
    assert {found.where for found in round_.answer.evidence} == {"Listing"}
    assert len(said.prompts) == 1


def test_a_number_that_is_insisted_on_is_marked_everywhere(stage: Stage) -> None:
    wrong = planner_reply("User", "The total is 8,324.")
    (round_,), script, listener = stage.play([ORDER, CELL, wrong, wrong])
    assert round_.state == "finished"
    assert round_.answer.unsupported_numbers == ("8,324",)
    assert listener.messages(RoundEventType.round_warning) == [
        "not found in any result of this session: 8,324"
    ]
    assert "answer_check" not in script.last()
    with stage.app.resume_session() as session:
        (again,) = session.memory.conversation.rounds
        assert again.answer == round_.answer


def test_figures_of_earlier_rounds_count_and_are_needed(stage: Stage) -> None:
    _, last = stage.play(
        [
            ORDER, CELL, planner_reply("User", "8234"),
            planner_reply("User", "It was 8234, as I said; you asked for 4711."),
        ],
        QUESTION, "what was it, and is it 4711?",
    )[0]  # fmt: skip
    assert [found.where for found in last.answer.evidence] == ["Result", "message"]


@pytest.mark.parametrize(
    ("question", "answer", "config"),
    [
        ("tell me a joke", "1,000 engineers walk into 3.5 bars.", {}),
        (QUESTION, "It is 4711.", {"answers.check": False}),
        (QUESTION, "It is 4711.", {"planner.max_retry_count": 0}),
    ],
)
def test_nothing_is_sent_back_where_it_makes_no_sense(
    stage: Stage, question: str, answer: str, config: dict[str, object]
) -> None:
    (round_,), _, _ = stage.play([planner_reply("User", answer)], question, **config)
    assert round_.answer.text == answer
    marked = ("4711",) if "planner.max_retry_count" in config else ()
    assert round_.answer.unsupported_numbers == marked


def test_a_session_without_a_planner_is_checked_too(stage: Stage) -> None:
    wrong, right = (code_reply(f"It is {n}.", "text") for n in (4711, 8234))
    (_, round_), script, _ = stage.play([CELL, wrong, right], QUESTION, "and?", **ALONE)
    assert "stand in no result of this conversation: 4711" in script.last()
    assert round_.answer.text == "It is 8234."
    assert round_.answer.evidence[0].cell == 1


def test_the_console_and_json_name_what_is_unsupported(project: Path) -> None:
    add_table(project)
    wrong = planner_reply("User", "The total is 8,324.")
    replies = iter([ORDER, CELL, wrong, wrong])

    def play_endpoint(call: Call) -> None:
        call.stream(good(next(replies)))

    with serving(play_endpoint) as endpoint:
        file = project / "taskweaver_config.json"
        more = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        more["llm.api_key"] = "k"
        file.write_text(json.dumps(json.loads(file.read_text()) | more))
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
        Chat(app, PlainSurface(shown), "latest")
    assert warning in shown.getvalue().rpartition("The total is 8,324.")[2]
