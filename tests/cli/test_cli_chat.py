"""Questions from scripts and terminals, answered by the offline model in a real kernel."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import CommandLine, run_in
from patience import PATIENCE_S
from screen import Screen
from support import trust_project

from taskweaver.cli.main import commands

pytestmark = pytest.mark.usefixtures("no_states")

PROMPT = ">\x1b"


@pytest.fixture
def new_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    folder = tmp_path / "sales"
    assert CliRunner().invoke(commands, ["init", str(folder)]).exit_code == 0
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def project(new_project: Path) -> Path:
    """A new project whose kernels start cold, and in no sandbox."""
    file = new_project / "taskweaver_config.json"
    keys = {"execution.zygote": False, "execution.sandbox": "none"}
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))
    trust_project(new_project)
    return new_project


@pytest.fixture
def without_table(project: Path) -> Path:
    """A project without data, at which a kernel would look before the first prompt."""
    (project / "data" / "orders.csv").unlink()
    return project


@pytest.mark.measured
def test_a_new_project_answers_its_first_question(new_project: Path) -> None:
    question = "how many rows are in orders.csv?"
    result = CliRunner().invoke(commands, ["-p", str(new_project), "-m", question])
    assert result.exit_code == 0, result.output
    assert "400" in result.stdout
    assert "model" in result.stderr


@pytest.mark.measured
def test_json_is_all_there_is_on_standard_output(project: Path) -> None:
    question = "plot the sum of amount per region in orders.csv"
    result = run_in(project, "--json", "-m", question)
    facts = json.loads(result.stdout)
    assert result.exit_code == 0, result.output
    assert (facts["state"], facts["is_answered"]) == ("finished", True)
    assert (facts["post_list"][0]["send_from"], facts["user_query"]) == ("User", question)
    assert facts["notes"] == ["files added: orders.csv."]
    assert facts["usage"]["calls"] > 0
    assert facts["usage"]["prompt_tokens"] == facts["usage"]["completion_tokens"] == 0
    assert all(Path(path).is_file() for path in facts["artifacts"])
    assert facts["artifacts"]
    assert facts["answer"] == facts["post_list"][-1]["message"]


def test_a_refusal_can_be_told_from_an_answer(project: Path) -> None:
    result = run_in(project, "--json", "-m", "tell me a joke")
    facts = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (facts["state"], facts["is_answered"]) == ("finished", False)
    assert facts["stop"] == "TaskFailure"


def test_files_are_added_by_option_and_by_name(project: Path, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("x\n1\n2\n3\n")
    (tmp_path / "two.csv").write_text("y\n" + "1\n" * 17)
    given = run_in(project, "-f", "one.csv", "-m", "how many rows are in one.csv?")
    named = run_in(project, "-m", "how many rows are in two.csv?")
    assert "3" in given.stdout
    assert "17" in named.stdout


def test_commands_divide_a_script(without_table: Path) -> None:
    script = "run this code: 20 * 20\n/reset\n/info\n/exit\nnever asked"
    result = run_in(without_table, typed=script)
    assert result.exit_code == 0
    assert "new session" in result.stdout
    assert "rounds   0" in result.stdout
    assert "never asked" not in result.stdout


def test_what_cannot_be_done_ends_with_status_1(project: Path) -> None:
    keys = {"API_TYPE": "openai", "API_BASE": "http://127.0.0.1:9/v1", "MODEL": "m"}
    keys |= {"MAX_RETRIES": "0", "API_KEY": "k"}
    environment = {f"LLM_{name}": value for name, value in keys.items()}
    command = ["-p", str(project), "--json", "-m", "hello"]
    result = CliRunner().invoke(commands, command, env=environment)
    assert result.exit_code == 1, result.output
    assert "failed:" in result.stderr
    assert "llm.api_base" in json.loads(result.stdout)["error"]
    assert "Traceback" not in result.output


@pytest.mark.parametrize("arguments", [["-m", "x"], ["--debug", "-m", "x"], ["doctor"]])
def test_a_configuration_that_cannot_be_read_is_told_in_a_line(
    project: Path, arguments: list[str]
) -> None:
    (project / "taskweaver_config.json").write_text('{"llm.max_retries": ')
    result = run_in(project, *arguments)
    assert result.exit_code == (1 if arguments == ["doctor"] else 2)
    assert "taskweaver_config.json" in result.output
    assert ("Traceback" in result.output) == ("--debug" in arguments)


def test_init_refuses_a_folder_that_holds_something(project: Path) -> None:
    result = CliRunner().invoke(commands, ["init", str(project)])
    assert result.exit_code == 2
    assert "not empty" in result.output


def test_a_chat_at_a_terminal_answers_and_goes_on_after_ctrl_c(project: Path) -> None:
    screen = Screen("-p", str(project))
    try:
        screen.wait_for(PROMPT)
        screen.wait_for("offline")
        screen.type("how many rows are in orders.csv?\r")
        screen.wait_for("400")
        screen.wait_for(PROMPT)
        screen.type("run this code: import time; print('beg' + 'un', flush=True); time.sleep(50)\r")
        screen.wait_for("begun")
        screen.type("\x03")
        screen.wait_for("Interrupted.")
        screen.wait_for(PROMPT)
        screen.type("how many columns are in orders.csv?\r")
        screen.wait_for("5")
        screen.wait_for("✓")
        screen.wait_for(PROMPT)
        screen.type("\x04")
        assert screen.wait_for_end() == 0
    finally:
        screen.process.kill()
        screen.process.wait(PATIENCE_S)
    assert "Traceback" not in screen.drawn


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_script_and_its_kernel(
    without_table: Path, command_line: CommandLine, number: signal.Signals, status: int
) -> None:
    code = "run this code: import time; print('beg' + 'un', flush=True); time.sleep(50)"
    with subprocess.Popen(
        [*command_line.program, "-p", str(without_table), "--json", "-m", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert any("begun" in line for line in process.stderr)
        process.send_signal(number)
        shown, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status
    assert "Traceback" not in errors
    facts = json.loads(shown)
    assert (facts["state"], facts["error"], facts["answer"]) == ("interrupted", "interrupted", "")
