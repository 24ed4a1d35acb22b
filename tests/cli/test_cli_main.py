"""The command line itself: what needs no project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click import Context
from click.testing import CliRunner

from taskweaver import __version__
from taskweaver.cli.main import commands

pytestmark = pytest.mark.measured

HEAVY = ("openai", "pandas", "rich", "prompt_toolkit", "injector", "jupyter_client", "yaml")


def said_by(*arguments: str, text: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(commands, list(arguments), input=text)
    return result.exit_code, result.output


def test_the_help_names_every_command_as_the_command_does() -> None:
    status, said = said_by("--help")
    assert status == 0
    assert "Exit status" in said
    with Context(commands) as context:
        for name in commands.list_commands(context):
            assert f"\n  {name} " in said
            command = commands.get_command(context, name)
            assert command is not None
            assert command.name == name


@pytest.mark.parametrize("words", [["-p", "{}", "init"], ["init", "{}"], ["init", "-p", "{}"]])
def test_the_folder_of_a_new_project_is_named_in_any_way(tmp_path: Path, words: list[str]) -> None:
    assert said_by(*(word.format(tmp_path / "new") for word in words))[0] == 0
    assert (tmp_path / "new" / "taskweaver_config.json").exists()


def test_the_version_is_told() -> None:
    assert said_by("--version") == (0, f"taskweaver, version {__version__}\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, runpy\n"
        "sys.argv = ['taskweaver', '--help']\n"
        "try:\n    runpy.run_module('taskweaver', run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "text", "reason"),
    [
        (["--no-such-option"], None, "No such option"),
        (["no-such-command"], None, "No such command"),
        (["-p", "/no/such/folder", "-m", "x"], None, "taskweaver init /no/such/folder"),
        (["-p", "/no/such/folder", "doctor"], None, "no folder"),
        (["-f", "/no/such.csv", "-m", "x"], None, "does not exist"),
        (["-m", "  "], None, "Nothing was asked"),
        ([], "\n\n", "Nothing was asked"),
        (["init"], None, "Which folder?"),
    ],
)
def test_wrong_usage_is_told_in_words_with_status_2(
    arguments: list[str], text: str | None, reason: str
) -> None:
    status, said = said_by(*arguments, text=text)
    assert status == 2
    assert reason in said
    assert "Traceback" not in said


def test_the_original_ways_to_a_server_lead_to_ours() -> None:
    assert "Serve the project over HTTP" in said_by("server", "-h")[1]
    for words in (["--server-url", "http://x:1"], ["chat", "--server-url", "http://x:1"]):
        status, said = said_by(*words)
        assert status == 2
        assert "Set execution.server, or run: EXECUTION_SERVER=http://x:1 taskweaver" in said


def test_a_closed_standard_input_asks_nothing() -> None:
    command = ["sh", "-c", 'exec "$0" -m taskweaver <&-', sys.executable]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "Nothing was asked" in ran.stderr
