"""The doctor's list of what was learnt of models, and its way to forget it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from taskweaver.cli.main import commands
from taskweaver.llm.facts import learnt
from taskweaver.llm.facts.learnt import LearntModel, stored_facts
from taskweaver.llm.transport.endpoint import Endpoint


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(learnt, "state_folder", lambda: tmp_path / "state")
    folder = tmp_path / "project"
    folder.mkdir()
    keys = {"llm.api_type": "offline", "execution.zygote": False}
    (folder / "taskweaver_config.json").write_text(json.dumps(keys))
    return folder


def endpoints(project: Path, *options: str) -> list[str]:
    arguments = ["-p", str(project), "doctor", "--json", *options]
    found: list[dict[str, Any]] = json.loads(CliRunner().invoke(commands, arguments).stdout)
    return [item["detail"] for item in found if item["name"] == "endpoint"]


def test_what_was_learnt_of_models_is_shown_and_forgotten(project: Path) -> None:
    for number in range(8):
        LearntModel(Endpoint("http://h:1/v1", f"m{number}")).note(form="json")
    LearntModel(Endpoint("http://h:2/v1", "newest")).note(
        form="fences",
        response_format="text",
        dropped=("seed", "stop"),
        renamed={"max_tokens": "max_completion_tokens"},
        is_effort_refused=True,
        window=8_192,
    )
    shown = endpoints(project)
    assert shown[0].partition(" (since 20")[0] == (
        "newest at http://h:2/v1: answers in the form fences; asked for JSON as text;"
        " takes no seed, stop; takes max_completion_tokens for max_tokens;"
        " takes tools without reasoning alone; window of 8,192 tokens"
    )
    assert shown[-1] == "and 1 further model"
    assert len(shown) == 9
    assert endpoints(project, "--forget-models") == []
    assert stored_facts() == []
