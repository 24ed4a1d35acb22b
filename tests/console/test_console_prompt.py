"""The prompt and the loop around it, driven through a pipe instead of a keyboard."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from taskweaver.console.loop import INTERRUPTED, LEAVING, Opening, talk
from taskweaver.console.terminal.blocks import Block, FailureBlock, NoteBlock
from taskweaver.console.terminal.prompt import LineCompleter, PlainReader, PromptReader, can_prompt
from taskweaver.console.terminal.surface import PlainSurface
from taskweaver.errors import TaskWeaverError

WORDS = ["/help", "/load", "sales.csv", "shop.db"]


@pytest.fixture
def keyboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def completions(line: str, *, asked: bool = False) -> list[str]:
    completer = LineCompleter(lambda: WORDS)
    event = CompleteEvent(completion_requested=asked)
    return [found.text for found in completer.get_completions(Document(line), event)]


def test_a_line_is_read_and_kept_in_the_history(keyboard: PipeInput, tmp_path: Path) -> None:
    keyboard.send_text("how many rows?\n")
    assert PromptReader(list).read() == "how many rows?"
    assert "how many rows?" in (tmp_path / ".taskweaver-history").read_text()


def test_ctrl_c_clears_a_line_and_interrupts_an_empty_one_and_ctrl_d_ends(
    keyboard: PipeInput,
) -> None:
    reader = PromptReader(list)
    keyboard.send_text("wrong\x03right\n")
    assert reader.read() == "right"
    for key, raised in {"\x03": KeyboardInterrupt, "\x04": EOFError}.items():
        keyboard.send_text(key)
        with pytest.raises(raised):
            reader.read()


def test_pasted_lines_and_alt_enter_make_one_message(keyboard: PipeInput) -> None:
    keyboard.send_text("\x1b[200~one\ntwo\x1b[201~\x1b\rthree\n")
    assert PromptReader(list).read() == "one\ntwo\nthree"


def test_opening_begins_when_the_prompt_is_shown_and_its_failure_ends_the_reading(
    keyboard: PipeInput,
) -> None:
    error = TaskWeaverError("no such project")
    started = threading.Event()

    def begin() -> None:
        started.set()
        threading.Thread(target=lambda: reader.give_up(error), daemon=True).start()

    reader = PromptReader(list, begin)
    with pytest.raises(TaskWeaverError):
        reader.read()
    assert started.is_set()


def test_commands_files_and_paths_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("x")
    assert completions("/") == ["/help", "/load"]
    assert completions("/LO") == ["/load"]
    assert completions("describe sa") == ["sales.csv"]
    assert completions("describe s") == []
    assert completions("/load mi") == ["ne.csv"]
    assert completions("describe ./mi") == ["ne.csv"]
    assert completions("describe mi") == []
    assert completions("describe mi", asked=True) == ["ne.csv"]


def test_without_a_terminal_lines_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: f"typed at {prompt!r}")
    assert PlainReader().read() == "typed at '> '"
    assert not can_prompt()


class Script:
    """A reader of given lines; an exception among them is raised."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines = iter(lines)

    def read(self) -> str:
        line = next(self._lines, EOFError)
        if isinstance(line, str):
            return line
        raise line


class Echo:
    """A listener that keeps what it hears; ``stop`` ends, ``interrupt`` is interrupted."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.is_closed = False

    def handle(self, line: str) -> bool:
        self.heard.append(line)
        if line == "interrupt":
            raise KeyboardInterrupt
        return line != "stop"

    def words(self) -> list[str]:
        return WORDS

    def close(self) -> None:
        self.is_closed = True


class Notes(PlainSurface):
    """A surface that keeps the texts of its notes."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def show(self, block: Block) -> None:
        self.notes.append(block.text if isinstance(block, NoteBlock | FailureBlock) else "")


def conversation(*lines: str | type[BaseException]) -> tuple[Echo, list[str]]:
    echo, surface = Echo(), Notes()
    opening = Opening(lambda: echo)
    talk(Script(*lines), opening, surface)
    opening.close()
    return echo, surface.notes


def test_lines_are_answered_until_the_listener_ends() -> None:
    echo, _ = conversation("one", "  ", "two", "stop", "three")
    assert echo.heard == ["one", "two", "stop"]
    assert echo.is_closed


def test_ctrl_c_warns_once_and_leaves_when_repeated_but_an_answer_is_only_interrupted() -> None:
    echo, notes = conversation(KeyboardInterrupt, "one", KeyboardInterrupt, KeyboardInterrupt, "x")
    assert (echo.heard, notes) == (["one"], [LEAVING, LEAVING])
    echo, notes = conversation("interrupt", "and on")
    assert (echo.heard, notes) == (["interrupt", "and on"], [INTERRUPTED])


def test_a_project_that_does_not_open_ends_the_conversation_with_its_error() -> None:
    def fail() -> Echo:
        raise TaskWeaverError("broken")

    opening = Opening(fail)
    with pytest.raises(TaskWeaverError, match="broken"):
        talk(Script("one"), opening, Notes())
    assert opening.words() == []
    opening.close()
