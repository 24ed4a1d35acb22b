"""``taskweaver setup``: at a terminal and without one, and `doctor`, which shows the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_in
from fake_endpoint import Call, FakeEndpoint, good, serving
from support import make_project
from test_model_setup import play_ollama

from taskweaver.cli import setup as command

KEY = "sk-typed-at-the-terminal-0123456789"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, a user's folders of this test, and no server at the usual ports."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LLM_AUTO_DETECT", "true")
    for module in ("setup", "selection.auto"):
        monkeypatch.setattr(f"taskweaver.llm.{module}.LOCAL_PORTS", {})
    return make_project(tmp_path / "project", {})


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving(play_ollama, states_facts=True) as endpoint:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{endpoint.port}")
        yield endpoint


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_is_terminal", lambda: True)


def settings(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def test_nothing_here_is_said_with_the_command_that_changes_it(project: Path) -> None:
    result = run_in(project, "setup")
    assert result.exit_code == 0, result.output
    assert "No model  Built-in analyst: sums, groups, filters, charts, answers now" in result.output
    assert "`ollama pull qwen3:4b`, then run `taskweaver setup` again." in result.output
    first = run_in(project, "setup", "--yes")
    assert first.exit_code == 1
    assert "ollama pull qwen3:4b" in first.output
    assert "llm.api_type" not in settings(project / "taskweaver_config.json")


@pytest.mark.parametrize(
    ("provider", "sentence"),
    [
        ("foo", "The provider 'foo' is none of openai, "),
        ("localhost:9901", "For an address: http://localhost:9901"),
        ("http://ann:pa55word@127.0.0.1:1/v1", "An address has no login"),
    ],
)
def test_a_provider_that_is_none_is_said_plainly(
    project: Path, provider: str, sentence: str
) -> None:
    result = run_in(project, "setup", "--provider", provider, "--model", "m")
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert "Model call failed" not in result.output
    assert "pa55word" not in result.output


def test_a_name_of_a_model_cannot_write_on_the_terminal(project: Path) -> None:
    with serving(lambda call: call.stream(good("42"))) as endpoint:
        name = "m\x1b[2J\nfake line" + "a" * 3000
        result = run_in(project, "setup", "--provider", endpoint.url, "--model", name, typed="k")
    assert "\x1b" not in result.output
    assert "\nfake" not in result.output
    assert max(map(len, result.output.splitlines())) < 300


def test_a_model_is_chosen_by_number(
    project: Path, ollama: FakeEndpoint, at_a_terminal: None
) -> None:
    result = run_in(project, "setup", typed="2\ny\n")
    assert result.exit_code == 0, result.output
    assert "1  qwen3:8b   Ollama, 5.2 GB (local, free), answers now" in result.output
    assert "gemma3:4b answers. Right answer, but no tool calls" in result.output
    assert settings(project / "taskweaver_config.json")["llm.ollama.model"] == "gemma3:4b"
    result = run_in(project, "-m", "hello")
    assert "model: gemma3:4b" in result.output


def test_a_provider_and_its_key_are_typed(
    project: Path, tmp_path: Path, at_a_terminal: None
) -> None:
    def play(call: Call) -> None:
        if call.headers.get("authorization") == f"Bearer {KEY}":
            call.stream(good("42"))
        else:
            call.refuse(401, "Incorrect API key provided")

    with serving(play) as endpoint:
        typed = ["2", endpoint.url, "m"]
        wrong = run_in(project, "setup", typed="\n".join([*typed, "sk-wrong-0123456789", ""]))
        assert wrong.exit_code == 1
        assert "Incorrect API key" in wrong.output
        assert not (tmp_path / "config").exists()
        right = run_in(project, "setup", "--all-projects", typed="\n".join([*typed, KEY, ""]))
    assert right.exit_code == 0, right.output
    assert KEY not in right.output
    folder = tmp_path / "config" / "taskweaver"
    assert settings(folder / "config.json")["llm.api_type"] == "other"
    assert (folder / "keys.json").stat().st_mode & 0o777 == 0o600
    assert "llm.api_type" not in settings(project / "taskweaver_config.json")


def test_it_runs_without_a_terminal(project: Path, ollama: FakeEndpoint) -> None:
    listed = json.loads(run_in(project, "setup", "--json").stdout)
    assert [row["name"] for row in listed] == ["qwen3:8b", "gemma3:4b", "No model"]
    chosen = json.loads(run_in(project, "setup", "--model", "gemma3:4b", "--json").stdout)
    assert (chosen["state"], chosen["is_chosen"]) == ("no-tools", True)
    unknown = run_in(project, "setup", "--model", "gpt-9")
    assert unknown.exit_code == 2
    assert "There is no model gpt-9" in unknown.output
    assert "there are: " in unknown.output


def test_the_environment_decides(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_MODEL", "m")
    result = run_in(project, "setup", "--yes")
    assert result.exit_code == 2
    assert "LLM_MODEL of the environment decides" in result.output


def test_the_doctor_asks_the_model_and_lists_the_others(
    project: Path, ollama: FakeEndpoint
) -> None:
    result = run_in(project, "doctor", "--json")
    found = [row for row in json.loads(result.stdout) if row["name"] == "model"]
    assert found[0]["detail"].startswith("qwen3:8b (127.0.0.1:")
    assert "2 models are here, `taskweaver setup` chooses" in found[0]["detail"]
    assert "tool calls work" in found[0]["detail"]
    assert found[1]["detail"] == "also here: gemma3:4b (Ollama, 3.3 GB (local, free))"
