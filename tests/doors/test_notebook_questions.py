"""`%%ask` in notebooks of a stock kernel, run by nbclient."""

from __future__ import annotations

import json
import subprocess
import sys
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
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=PATIENCE_S, allow_errors=True, resources=place).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: Any, mime: str = "text/plain") -> str:
    return "".join(
        output.get("data", {}).get(mime, "") or output.get("text", "") for output in outputs
    )


def test_a_notebook_asks_without_a_model_with_one_and_of_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one notebook: its kernel's imports take most of the time."""
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
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with serving(lambda call: call.stream(bodies[call.number])) as endpoint:
        keys = {"LLM_API_TYPE": "openai", "LLM_API_BASE": endpoint.url}
        keys |= {"LLM_API_KEY": "k", "LLM_MODEL": "m"}
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
        outputs = run(tmp_path, *offline, *model, *confirmed)
    first, second = (json.dumps(call.body) for call in endpoint.calls)
    failures = [one for cell in outputs for one in cell if one["output_type"] == "error"]
    assert failures == []

    _, _, table, chart, largest, kept, ran, made, failed, empty, end = outputs[: len(offline)]
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
    assert not list(tmp_path.glob("*.png"))

    _, _, answer, double, _, *outputs = outputs[len(offline) :]
    assert "It is 34." in shown(answer)
    assert shown(double) == "np.int64(34)"
    assert "DataFrame 4x3" in first
    assert "34" in second

    _, _, _, refused, there = outputs
    assert "no person was asked" in shown(refused)
    assert shown(there) == "False"


def test_a_person_at_the_notebook_is_shown_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request = ConfirmationRequest(frozenset({"code"}), "made = 1")
    answers = {"y": Confirmation.yes, "": Confirmation.no, "a": Confirmation.always}
    for typed, answer in answers.items():
        monkeypatch.setattr("builtins.input", lambda _question, typed=typed: typed)
        assert AskInNotebook().request_confirmation(request, 1.0) is answer
        assert "made = 1" in capsys.readouterr().out


def test_a_question_mark_is_part_of_the_question() -> None:
    lines = ["x = %ask how many?\n", "  y = 1\n", "%asked?\n"]
    call = "x = get_ipython().run_line_magic('ask', 'how many?')\n"
    assert _plain_questions(lines) == [call, *lines[1:]]


def test_the_package_is_imported_without_its_doors() -> None:
    code = "import taskweaver, sys; print([m for m in sys.modules if 'jupyter' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
