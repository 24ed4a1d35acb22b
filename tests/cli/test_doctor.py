"""``taskweaver doctor``: projects of this program and of the original, plugins, models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_in
from originals import make_original
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.kernel_server import KernelServer
from taskweaver.llm import learnt
from taskweaver.llm.learnt import LearntModel, stored_facts
from taskweaver.llm.transport.endpoint import Endpoint


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"llm.api_type": "offline"})


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return make_original(tmp_path / "original", {"llm.api_type": "offline"})


def test_doctor_finds_a_project_well(project: Path) -> None:
    result = run_in(project, "doctor")
    assert result.exit_code == 0, result.output
    assert "fail" not in result.output
    for part in ("python", "packages", "config", "model", "kernel", "sandbox", "plugins", "roles"):
        assert part in result.output


def test_the_doctor_and_the_application_list_the_same_bounds(tmp_path: Path) -> None:
    config = {"execution.memory_limit_mb": 700, "execution.open_file_limit": 0}
    project = make_project(tmp_path / "project", config, has_table=False)
    with TaskWeaverApp(project) as app:
        listed = [str(bound) for bound in app.bounds]
        assert listed == [str(bound) for bound in app.get_session().bounds]
    assert listed[0].startswith("memory 700 MiB: ")
    assert "open files no limit (execution.open_file_limit)" in listed
    rows = json.loads(run_in(project, "doctor", "--json").output)
    assert [row["detail"] for row in rows if row["name"] == "limit"] == listed


def test_doctor_checks_the_server_that_runs_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelServer, "_tries", lambda _: iter([True]))
    keys = {"llm.api_type": "offline", "execution.server": "http://127.0.0.1:9"}
    result = run_in(make_project(tmp_path / "p", keys), "doctor")
    (line,) = (line for line in result.output.splitlines() if line.startswith("fail"))
    assert line.startswith("fail  kernel")
    assert "127.0.0.1:9, does not answer" in line
    assert "sessions" in result.output


def test_doctor_names_a_server_of_another_protocol(tmp_path: Path) -> None:
    keys = {"llm.api_type": "offline", "execution.server": "ssh://ann@gpu-box"}
    result = run_in(make_project(tmp_path / "project", keys), "doctor")
    assert result.exit_code == 1
    assert "fail  config    execution.server must begin with http://" in result.output


def test_doctor_loads_each_plugin_as_a_session_would(project: Path) -> None:
    (project / "plugins").mkdir()
    text = "name: late\ndescription: d\nparameters: []\nreturns: []\n"
    (project / "plugins" / "late.yaml").write_text(text)
    (project / "plugins" / "late.py").write_text("raise SystemExit(3)\n")
    result = run_in(project, "doctor")
    assert result.exit_code == 1
    (line,) = (line for line in result.output.splitlines() if line.startswith("fail"))
    assert "'late'" in line
    assert "SystemExit" in line


def test_the_doctor_says_what_is_in_a_folder_of_the_original(original: Path) -> None:
    (original / "plugins" / "stray.py").write_text("x = 1\n")
    (original / "plugins" / "late.yml").write_text("name: late\n")
    folder = original / "examples" / "planner_examples"
    (folder / "sales").mkdir()
    (folder / "sales" / "a.yaml").write_text("enabled: true\nrounds: []\n")
    (original / "experience" / "exp_odd.yaml").write_text("embedding: []\n")
    (original / "my_roles" / "lost").mkdir()
    (original / "my_roles" / "lost" / "lost.role.yaml").write_text(
        "alias: Lost\nmodule: lost.lost.Lost\nintro: x\n"
    )
    (original / "my_roles" / "half.role.yaml").write_text("alias: Half\n")
    file = original / "taskweaver_config.json"
    keys = json.loads(file.read_text())
    keys["session.roles"].append("web_explorr")
    file.write_text(json.dumps(keys))
    said = run_in(original, "doctor", "--json")
    found = json.loads(said.output)

    def told(name: str) -> str:
        return "\n".join(item["detail"] for item in found if item["name"] == name)

    assert "add_tax, count_letters, to_foot, to_metre, weather" in told("plugins")
    assert "switched off: old_service" in told("plugins")
    assert "of the project: glossary, lost, shouter" in told("roles")
    assert "taking part: planner, " in told("roles")
    assert "planner: 2, 1 switched off" in told("examples")
    assert "code_generator: 1" in told("examples")
    assert told("learnt") == "experiences: 3"
    assert "workspace.mode has no effect" in told("config")
    unread = told("not read")
    for part in ("stray.py", "late.yml", "sales/a.yaml", "plugins/.meta"):
        assert part in unread
    assert "lengths.py" not in unread
    broken = {item["detail"]: item["status"] for item in found if item["name"] == "broken"}
    for part, status in (
        ("exp_odd.yaml", "fail"),
        ("role lost: lost.lost.Lost does not import", "warn"),
        ("role half.role.yaml: `module` must be a text", "warn"),
        ("did you mean 'web_explorer'", "fail"),
    ):
        assert [broken[detail] for detail in broken if part in detail] == [status]
    assert said.exit_code == 1


def test_what_was_learnt_of_models_is_shown_and_forgotten(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learnt, "state_folder", lambda: tmp_path / "state")

    def endpoints(*options: str) -> list[str]:
        found = json.loads(run_in(project, "doctor", "--json", *options).output)
        return [item["detail"] for item in found if item["name"] == "endpoint"]

    for number in range(8):
        LearntModel(Endpoint("http://h:1/v1", f"m{number}")).note(form="json")
    LearntModel(Endpoint("http://h:2/v1", "newest")).note(
        form="fences", response_format="text", dropped=("seed", "stop"), window=8_192,
        renamed={"max_tokens": "max_completion_tokens"}, is_effort_refused=True,
    )  # fmt: skip
    shown = endpoints()
    assert shown[0].partition(" (since 20")[0] == (
        "newest at http://h:2/v1: form: fences; response format: text; dropped: ('seed', 'stop');"
        " renamed: {'max_tokens': 'max_completion_tokens'}; is effort refused: True; window: 8192"
    )
    assert shown[-1] == "and 1 further model"
    assert len(shown) == 9
    assert endpoints("--forget-models") == []
    assert stored_facts() == []
