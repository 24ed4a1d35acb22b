"""`%%ask` in notebooks of a stock kernel, run by nbclient."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from fake_endpoint import good, serving
from nbclient import NotebookClient
from patience import PATIENCE_S
from tool_replies import called

from taskweaver.doors.jupyter.asking import AskInNotebook, _plain_questions
from taskweaver.module.confirmation import Confirmation, ConfirmationRequest

FRAME = (
    "import pandas as pd\n"
    "cars = pd.DataFrame({'Origin': list('aabb'), 'Power': [1, 3, 5, 8],"
    " 'When': pd.to_datetime(['2020-01-01'] * 4)})"
)


def run(folder: Path, *cells: str) -> list[Any]:
    """Return the outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=PATIENCE_S, allow_errors=True, resources=place).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: Any, mime: str = "text/plain") -> str:
    return "".join(
        output.get("data", {}).get(mime, "") or output.get("text", "") for output in outputs
    )


def errors(cells: list[Any]) -> list[str]:
    """Return the errors of cells that failed."""
    outputs = [output for outputs in cells for output in outputs]
    return [one["evalue"] for one in outputs if one["output_type"] == "error"]


@dataclass
class Asked:
    """A notebook that has run.

    Attributes:
        folder: Its folder.
        offline: Outputs of its cells without a model.
        model: Outputs of those with a model.
        calls: What the model was asked.
        confirmed: Outputs of those in a project that asks before each cell.
    """

    folder: Path
    offline: list[Any]
    model: list[Any]
    calls: list[str]
    confirmed: list[Any]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Run one notebook for all tests: its kernel's imports take most of their time."""
    folder = tmp_path_factory.mktemp("notebook")
    code = "double = cars.Power * 2\nint(double.sum())"
    bodies = [called(("run_python", {"intent": "sum", "code": code})), good("It is 34.")]
    config = {"code_interpreter.require_confirmation": True, "llm.api_type": "offline"}
    offline = (
        FRAME,
        "%load_ext taskweaver",
        "%%ask\nmean of Power per Origin in cars",
        "%ask bar chart of mean Power per Origin in @cars",
        "answer = %ask what is the largest Power in cars?\nprint(answer.text)",
        "cars.When.dtype.kind, pd.get_option('display.width')",
        "%ask run this code: made = len(cars) + 38; made",
        "made, answer.is_answered",
        "%ask run this code: 1 / 0",
        "%ask",
        "%unload_ext taskweaver\nmade",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM_API_TYPE", "offline")
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with serving(lambda call: call.stream(bodies[call.number])) as endpoint:
            keys = {
                "LLM_API_TYPE": "openai",
                "LLM_API_BASE": endpoint.url,
                "LLM_API_KEY": "k",
                "LLM_MODEL": "m",
            }
            model = (
                f"import os\nos.environ |= {keys}",
                "%load_ext taskweaver",
                "%ask twice the sum of Power?",
                "double.sum()",
                "%unload_ext taskweaver",
            )
            confirmed = (
                f"for name in {list(keys)}:\n    del os.environ[name]",
                f"open('taskweaver_config.json', 'w').write({json.dumps(config)!r})",
                "%load_ext taskweaver",
                "%ask run this code: unmade = 1",
                "'unmade' in globals()",
            )
            outputs = run(folder, *offline, *model, *confirmed)
        calls = [json.dumps(call.body) for call in endpoint.calls]
    first, second = len(offline), len(offline) + len(model)
    return Asked(folder, outputs[:first], outputs[first:second], calls, outputs[second:])


def test_answers_come_from_the_notebook_s_own_variables(asked: Asked) -> None:
    assert errors(asked.offline) == []
    _, _, table, chart, largest, kept, ran, made, failed, empty, end = asked.offline
    assert "6.5" in shown(table)
    assert "<table" in shown(table, "text/html")
    assert "data:image/png" in shown(chart, "text/html")
    assert "**8**" in shown(largest)
    assert shown(kept) == "('M', 80)"
    assert "42" in shown(ran)
    assert shown(made) == "(42, True)"
    assert "ZeroDivisionError" in shown(failed)
    assert "What is the question?" in shown(empty)
    assert shown(end) == "42"
    assert not list(asked.folder.glob("*.png"))


def test_a_model_reads_the_notebook_and_runs_cells_in_it(asked: Asked) -> None:
    assert errors(asked.model) == []
    _, _, answer, double, _ = asked.model
    assert "It is 34." in shown(answer)
    assert shown(double) == "np.int64(34)"
    first, second = asked.calls
    assert "DataFrame 4x3" in first
    assert "34" in second


def test_the_project_s_confirmation_holds(asked: Asked) -> None:
    assert errors(asked.confirmed) == []
    _, _, _, refused, there = asked.confirmed
    assert "no person was asked" in shown(refused)
    assert shown(there) == "False"


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("y", Confirmation.yes), ("", Confirmation.no), ("a", Confirmation.always)],
)
def test_a_person_at_the_notebook_is_shown_the_code(
    typed: str,
    answer: Confirmation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("builtins.input", lambda _question: typed)
    request = ConfirmationRequest(frozenset({"code"}), "made = 1")
    assert AskInNotebook().request_confirmation(request, 1.0) is answer
    assert "made = 1" in capsys.readouterr().out


def test_a_question_mark_is_part_of_the_question() -> None:
    lines = ["x = %ask how many?\n", "  y = 1\n", "%asked?\n"]
    call = "x = get_ipython().run_line_magic('ask', 'how many?')\n"
    assert _plain_questions(lines) == [call, *lines[1:]]


def test_the_package_is_imported_without_its_doors() -> None:
    import subprocess

    code = "import taskweaver, sys; print([m for m in sys.modules if 'jupyter' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
