"""A chat over a real project and session; only the model's part is played by a function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.chat import Chat, is_answered
from taskweaver.console.commands.table import BY_NAME, COMMANDS, CommandLine
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.llm.types import ChatMessage
from taskweaver.page.one_file import conversation_page

pytestmark = pytest.mark.usefixtures("no_states")

CODE = """from pathlib import Path

Path('made.txt').write_text('x')
print('files', sorted(path.name for path in Path().iterdir()))
40 + 2"""


def reply(**fields: str) -> str:
    return json.dumps({"response": fields})


def planner(to: str, message: str, stop: str = "Completed") -> str:
    known = {"plan_reasoning": "r", "plan": "1. do it", "current_plan_step": "1. do it"}
    return reply(**known, stop=stop, send_to=to, message=message)


def model(messages: Sequence[ChatMessage]) -> str:
    """Run `CODE` when asked to compute, give up when asked to, else repeat what was said."""
    if "You carry out tasks by Python cells" in str(messages[0]["content"]):
        return reply(thought="I compute it.", reply_type="python", reply_content=CODE)
    said = str(messages[-1]["content"])
    if "The code ran to its end." in said:
        return planner("User", "It is 42.")
    if "compute" in said:
        return planner("CodeInterpreter", "compute it", "InProcess")
    if "offer" in said:
        answer = json.loads(planner("User", "Ask one of these."))
        offers = ["compute the rest", {"text": "stop", "shows": "number"}]
        answer["response"]["suggestions"] = offers
        return json.dumps(answer)
    if "give up" in said:
        return planner("User", "It cannot be done.", "TaskFailure")
    return planner("User", f"You said: {said.partition('Message: ')[2].strip()}")


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    """A chat that begins without tables: looking at one starts a kernel."""
    project = make_project(tmp_path / "project", has_table=False)
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.csv").write_text("b\n2\n")
    monkeypatch.chdir(here)
    with TaskWeaverApp(project, model=model) as app:
        yield Chat(app, PlainSurface())


@pytest.fixture
def line(chat: Chat) -> CommandLine:
    return CommandLine(chat)


def add_sales(chat: Chat) -> None:
    (chat.app.app_dir / "data" / "sales.csv").write_text("a\n1\n")


def test_a_message_is_answered_and_shown_with_its_effort(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line.handle("/tmp/nothing.csv what is it?")
    said = capsys.readouterr().out
    assert "You said: /tmp/nothing.csv what is it?" in said
    assert "tokens)" in said
    assert not is_answered(line.chat.ask("give up"))
    assert "not done: It cannot be done." in capsys.readouterr().out


def test_code_runs_and_its_output_value_and_files_are_shown(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    add_sales(chat)
    round_ = chat.ask("compute it with sales.csv and mine.csv")
    said = capsys.readouterr().out
    assert is_answered(round_)
    for expected in ("adding mine.csv", "I compute it.", "sales.csv", "  42", "It is 42."):
        assert expected in said
    assert said.count("40 + 2") == 1
    assert (chat.session.execution_cwd / "made.txt").exists()


def test_a_file_that_vanished_is_told_in_a_line_and_the_session_goes_on(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    line.handle("/load mine.csv")
    Path("mine.csv").unlink()
    assert line.handle("hello")
    assert "mine.csv cannot be added" in capsys.readouterr().out
    line.chat.waiting.clear()
    line.handle("hello again")
    assert "You said: hello again" in capsys.readouterr().out


def test_loaded_files_go_with_the_next_message_only(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two words.csv").write_text("c\n")
    names = ("mine.csv", "two words.csv", "'two words.csv'", "mine.csv")
    for command, name in zip(("/LOAD", "/file", "/img", "/image"), names, strict=True):
        line.handle(f"{command} {name}")
    line.handle("hello")
    line.handle("once more")
    said = capsys.readouterr().out
    assert said.count("goes with the next message") == 2
    assert said.count("files added") == 1
    assert (line.chat.session.execution_cwd / "two words.csv").exists()


COMMANDS_SAY = {
    "/help": "/load /file /img /image PATH...",
    "/load": "Which file?",
    "/load nothing.csv": "There is no file nothing.csv in ",
    "/load ..": ".. is a folder: name a file in it.",
    "/load 'nothing": "There is no file nothing in ",
    "/inof": "did you mean /info?",
    "/zzz": "/help lists them",
    "/save": "nothing to save yet",
    "/plugins": "no plugins",
    "/info": "limit    kernel.log 16 MiB: watched while a cell or a process it left runs",
    "/clear": "",
}


def test_commands_say_what_they_did_and_leaving_ends_the_conversation(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, expected in COMMANDS_SAY.items():
        assert line.handle(command)
        assert expected in capsys.readouterr().out, command
    for command in ("/exit", "/BYE", " quit()"):
        assert not line.handle(command)


def test_conversations_are_saved_and_pages_written_where_there_are_pages(
    line: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    line.handle("hello")
    line.handle("/save")
    assert "saved as" in capsys.readouterr().out
    assert list(line.chat.session.config.experience_dir.glob("*.yaml"))
    line.handle("/export page")
    assert "writes no pages" in capsys.readouterr().out
    line.chat.page_maker = conversation_page
    line.handle("/export page said")
    assert "You said: hello" in (line.chat.session.execution_cwd / "said").read_text("utf-8")


def test_reset_starts_a_new_session_and_commands_and_files_are_completed(line: CommandLine) -> None:
    before = line.chat.session.session_id
    line.handle("/load mine.csv")
    line.handle("/reset")
    assert line.chat.session.session_id != before
    assert line.chat.waiting == []
    line.handle("hello")
    assert len(line.chat.session.memory.conversation.rounds) == 1
    add_sales(line.chat)
    assert {"/help", "/exit", "sales.csv"} <= set(line.words())
    assert len(BY_NAME) == sum(len(command.names) for command in COMMANDS)


def test_leaving_that_is_interrupted_says_what_may_be_lost(
    chat: Chat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(chat.app, "stop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            chat.close()
    assert "may not be stored" in capsys.readouterr().out


def test_a_number_takes_a_question_that_the_answer_offers(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    offering = chat.ask("offer me something")
    assert offering is not None
    assert [one.shows for one in offering.answer.suggestions.questions] == ["", "number"]
    taken = chat.ask("2.")
    assert taken is not None
    assert taken.question == "stop"
    assert "stop" in capsys.readouterr().out
    plain = chat.ask("2")
    assert plain is not None
    assert plain.question == "2"


def test_the_first_screen_lists_files_and_questions(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(7):
        table = "kind,price\na,1.5\nb,2.5\na,4\n"
        (chat.app.app_dir / "data" / f"t{number}.csv").write_text(table)
    chat.show_files()
    shown = capsys.readouterr().out
    assert "t0.csv      3 rows: kind, price" in shown
    assert "and 2 more" in shown
    assert "1           What is the mean price per kind in t0.csv?" in shown
    taken = chat.ask("3")
    assert taken is not None
    assert taken.question == "Plot a histogram of price in t2.csv"
    capsys.readouterr()
    chat.show_files()
    assert capsys.readouterr().out == "", "the screen is not interrupted once a message was sent"
