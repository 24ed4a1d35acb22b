"""Projects that another person wrote, opened by commands: with consent, without, and unasked."""

from __future__ import annotations

import io
import json
import os
import pty
import py_compile
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fake_endpoint import good, serving
from support import planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli import opening
from taskweaver.cli.main import commands
from taskweaver.trust.opening import read_project
from taskweaver.utils.app_utils import CONFIG_FILE

pytestmark = pytest.mark.usefixtures("no_states")
KEY = "sk-proj-the-users-own-key-0123456789"
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


class Strangers:
    """A project that another person wrote, whose programs and code leave a file each."""

    def __init__(self, place: Path) -> None:
        self.folder, self.marks = place / "theirs", place / "marks"
        self.marks.mkdir()
        secret = place / "secret.csv"
        secret.write_text("who\n" + "me\n" * 23)
        for name in ("data", "roles/theirs"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "data" / "own.csv").write_text("n\n1\n2\n")
        (self.folder / "data" / "leak.csv").symlink_to(secret)
        self.write_role("x = 1")
        program = ["-c", self._leave("program")]
        keys = {
            "llm.api_type": "offline", "session.roles": ["planner", "code_interpreter", "theirs"],
            "mcp.servers": {"theirs": {"command": sys.executable, "args": program}},
            "execution.sandbox": "none", "execution.zygote": False,
            "code_interpreter.code_prefix": self._leave("prefix"),
        }  # fmt: skip
        (self.folder / CONFIG_FILE).write_text(json.dumps(keys))

    def _leave(self, mark: str) -> str:
        return f"import pathlib; pathlib.Path({str(self.marks / mark)!r}).touch()"

    def write_role(self, line: str) -> None:
        folder = self.folder / "roles" / "theirs"
        (folder / "theirs.role.yaml").write_text(
            "alias: Theirs\nmodule: theirs.theirs.Theirs\nintro: helps\n"
        )
        (folder / "theirs.py").write_text(
            f"{self._leave('role')}\n{line}\n"
            "from taskweaver.ext_role.echo.echo import Echo\n\n\nclass Theirs(Echo):\n    pass\n"
        )

    @property
    def traces(self) -> set[str]:
        return {path.name for path in self.marks.iterdir()}

    def run(self, *arguments: str, typed: str | None = None) -> Result:
        first = [item for item in arguments if item in ("--trust", "--no-trust")]
        rest = [item for item in arguments if item not in first]
        whole = [*first, "-p", str(self.folder), *rest]
        return CliRunner().invoke(commands, whole, input=typed)


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Strangers:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("EXECUTION_ZYGOTE", "false")  # where the project's own value is off
    return Strangers(tmp_path)


QUESTION = "how many rows are in leak.csv?"


def test_with_consent_everything_acts_and_a_change_asks_again(strangers: Strangers) -> None:
    """The attacks succeed with the switch off, so the other tests prove something."""
    said = strangers.run("--trust", "-m", QUESTION)
    assert said.exit_code == 0, said.output
    assert "23" in said.stdout
    assert strangers.traces == {"program", "role", "prefix"}
    assert strangers.run("-m", "/info").exit_code == 0  # the answer was kept
    strangers.write_role("x = 2")
    said = strangers.run("-m", "/info")
    assert said.exit_code == 2
    assert "code of roles" in said.output


def test_without_an_answer_a_script_is_refused_with_the_reasons(strangers: Strangers) -> None:
    said = strangers.run("-m", QUESTION)
    assert said.exit_code == 2
    for part in (
        "mcp.servers.theirs: {", 'execution.sandbox: "none"', "code_interpreter.code_prefix",
        "code of roles, with your rights: theirs", "data/leak.csv -> ", "--trust", "--no-trust",
    ):  # fmt: skip
        assert part in said.output, part
    assert strangers.traces == set()


def test_without_trust_the_chat_works_and_none_of_it_acts(strangers: Strangers) -> None:
    said = strangers.run("--no-trust", "-m", "how many rows are in own.csv?")
    assert said.exit_code == 0, said.output
    assert "2" in said.stdout
    assert "Not trusted and off:" in said.stderr
    said = strangers.run("--no-trust", "-m", QUESTION)
    assert said.exit_code == 1
    assert "leak.csv leads out of the project by a link" in said.stdout
    assert strangers.traces == set()
    with TaskWeaverApp(strangers.folder, trust=False) as app:
        plain = strangers.folder.parent / "plain"
        plain.mkdir()
        with TaskWeaverApp(plain) as with_defaults:
            assert app.sandbox == with_defaults.sandbox
        assert len(app.withheld) == 5


def test_the_doctor_lists_and_runs_nothing_unless_trusted(strangers: Strangers) -> None:
    said = strangers.run("doctor")
    assert "off, not trusted: mcp.servers.theirs" in said.output
    assert "off, not trusted: code of roles" in said.output
    assert strangers.traces == set()
    said = strangers.run("--trust", "doctor")
    assert "not trusted" not in said.output
    assert {"program", "role"} <= strangers.traces


@pytest.mark.parametrize(
    "command",
    [
        ["role", "new", "mine"], ["plugin", "test"], ["sessions"], ["search", "list"], ["mcp"],
        ["chat"], ["check", __file__],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_no_command_acts_without_an_answer(strangers: Strangers, command: list[str]) -> None:
    said = strangers.run(*command)
    assert strangers.traces == set(), said.output
    assert not isinstance(said.exception, AssertionError), said.output


def test_the_command_trust_decides_and_forgets(strangers: Strangers) -> None:
    assert strangers.run("trust").exit_code == 2
    said = strangers.run("--trust", "trust")
    assert said.exit_code == 0
    assert "Trusted:" in said.output
    assert strangers.run("-m", "/info").exit_code == 0
    assert "Forgotten" in strangers.run("trust", "--forget").output
    assert strangers.run("-m", "/info").exit_code == 2


def test_a_person_is_asked_once_and_again_after_a_change(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_can_ask", lambda: True)
    assert "is not trusted" in strangers.run("-m", "/info", typed="").output  # is no answer
    said = strangers.run("-m", "/info", typed="y\n")
    assert said.exit_code == 0, said.output
    assert "mcp.servers.theirs" in said.stderr
    assert "Trust this project? [y/N]" in said.stderr
    assert "role" in strangers.traces
    assert "Trust" not in strangers.run("-m", "/info").output  # the answer was kept
    for path in strangers.marks.iterdir():
        path.unlink()
    strangers.write_role("x = 3")
    said = strangers.run("-m", "/info", typed="\n")
    assert said.exit_code == 0, said.output
    question, _, after = said.stderr.partition("Trust this project? [y/N]")
    assert "something changed since" in question
    assert "code of roles" in question
    assert "opened without these" in after
    assert "Not trusted and off: mcp.servers, " in after
    assert "role" not in strangers.traces


def test_a_terminal_is_a_place_where_a_person_is_asked(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    drawn = bytearray()

    def person() -> None:
        with suppress(OSError):  # the terminal is closed
            while b"[y/N]" not in drawn:
                drawn.extend(os.read(ours, 4096))
            os.write(ours, b"\n")

    asked = threading.Thread(target=person)
    with open(theirs) as keyboard, open(os.dup(theirs), "w") as screen:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys, "stderr", screen)
        os.write(ours, b"y\n")  # before the question, it is no answer
        asked.start()
        assert not opening.consent_to(strangers.folder)
    asked.join()
    os.close(ours)
    assert b"mcp.servers.theirs" in drawn


def test_a_key_goes_to_no_address_of_a_project_without_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(lambda call: call.stream(good(planner_reply("User", "hello")))) as endpoint:
        folder = tmp_path / "theirs"
        folder.mkdir()
        keys = {"llm.api_base": endpoint.url, "llm.model": "m", "llm.max_retries": 0}
        (folder / CONFIG_FILE).write_text(json.dumps(keys))
        base = ["-p", str(folder), "-m", "hi"]
        assert CliRunner().invoke(commands, base).exit_code == 2
        assert endpoint.calls == []
        said = CliRunner().invoke(commands, ["--trust", *base])
        assert said.exit_code == 0, said.output
        assert endpoint.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_names_and_long_lines_cannot_change_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a b\nOpening it runs nothing \x1b[2J\u202e"
    folder.mkdir()
    servers = {"a": {"command": "sh", "args": ["x" * 4000, "tail"]}}
    (folder / CONFIG_FILE).write_text(json.dumps({"mcp.servers": servers}))
    monkeypatch.setattr(opening, "_can_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert opening.consent_to(folder) == frozenset()
    question, program, last = capsys.readouterr().err.splitlines()
    assert question.endswith("runs, sends or loosens the following:")
    assert len(program) < 1100
    assert "characters left out" in program
    assert "tail" in program
    assert last == "Trust this project? [y/N] It is opened without these."
    notice = read_project(folder, {}, frozenset(), lambda _: True).notice
    assert "\n" not in notice
    assert "taskweaver trust '" in notice


@as_root
def test_a_project_of_another_user_above_the_current_folder_is_not_opened(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = strangers.folder / "below"
    below.mkdir()
    for path in (strangers.folder, strangers.folder / CONFIG_FILE):
        os.chown(path, NOBODY, NOBODY)
    monkeypatch.chdir(below)
    said = CliRunner().invoke(commands, ["--trust", "-m", "/info"])
    assert said.exit_code == 0, said.output
    assert "is a plain folder" in said.output
    assert strangers.traces == set()
    monkeypatch.chdir(strangers.folder)
    said = CliRunner().invoke(commands, ["--no-trust", "-m", "/info"])
    assert "taskweaver_config.json is not read" in said.output
    assert strangers.traces == set()
    said = CliRunner().invoke(commands, ["--no-trust", "-p", str(strangers.folder), "-m", "/info"])
    assert said.exit_code == 2
    assert "belongs to another user" in said.output
    assert strangers.traces == set()


def test_bytecode_that_came_with_a_folder_is_not_run(strangers: Strangers, tmp_path: Path) -> None:
    source = strangers.folder / "roles" / "theirs" / "theirs.py"
    other = tmp_path / "other.py"
    mark = strangers.marks / "bytecode"
    other.write_text(source.read_text() + f"pathlib.Path({str(mark)!r}).touch()\n")
    cached = source.parent / "__pycache__" / f"theirs.{sys.implementation.cache_tag}.pyc"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), str(cached), invalidation_mode=unchecked)
    strangers.run("--trust", "doctor")
    assert "bytecode" not in strangers.traces
    assert "role" in strangers.traces
