"""The project of a server over the agent API: its checks, and its settings."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from agents import API
from served import Served, problem

CONFIG = {
    "llm.api_type": "offline",
    "llm.api_key": "sk-this-is-secret-0123456789",
    "execution.sandbox": "none",
    "execution.zygote": False,
    "limits.round_tokens": 500,
    "planner.example_base_path": "mine",
}


@pytest.fixture
def file(server: Served) -> Path:
    return server.log.parent / "project" / "taskweaver_config.json"


def settings(client: httpx2.Client) -> dict[str, dict[str, Any]]:
    response = client.get(f"{API}/settings").raise_for_status()
    assert "secret" not in response.text
    return {item["name"]: item for item in response.json()["settings"]}


def test_settings_have_values_types_and_no_secrets(client: httpx2.Client) -> None:
    found = settings(client)
    tokens = found["limits.round_tokens"]
    assert (tokens["type"], tokens["value"], tokens["stored"]) == ("int", 500, 500)
    assert (tokens["origin"], tokens["default"], tokens["minimum"]) == ("file", 0, 0)
    assert tokens["doc"].startswith("Tokens after which a round stops")
    assert (found["answers.check"]["value"], found["answers.check"]["origin"]) == (True, "default")
    assert "tools" in found["llm.form"]["choices"]
    secret = {"llm.api_key", "llm.api_base", "execution.sandbox", "mcp.servers", "session.roles"}
    assert not secret & found.keys()


def test_changes_are_written_at_once_and_the_rest_of_the_file_stays(
    client: httpx2.Client, file: Path
) -> None:
    file.chmod(0o600)
    before = json.loads(file.read_text("utf-8"))
    values = {"limits.round_tokens": None, "limits.session_cost": 2, "llm.form": "json"}
    changed = client.patch(f"{API}/settings", json={"values": values})
    assert changed.status_code == 200, changed.text
    found = {item["name"]: item for item in changed.json()["settings"]}
    assert (found["llm.form"]["stored"], found["llm.form"]["value"]) == ("json", "auto")
    tokens = found["limits.round_tokens"]
    assert (tokens["stored"], tokens["value"]) == (None, 500)
    del before["limits.round_tokens"]
    before |= {"limits.session_cost": 2.0, "llm.form": "json"}
    assert json.loads(file.read_text("utf-8")) == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_does_not_fit_changes_nothing(client: httpx2.Client, file: Path) -> None:
    before = file.read_bytes()
    wrong = {"llm.form": "no such form", "limits.round_tokens": -1, "llm.api_key": "x"}
    wrong |= {"code_interpreter.confirmation_timeout_s": 1e10, "no.such": 1}
    for name, value in wrong.items():
        body = {"values": {"answers.check": False, name: value}}
        refused = problem(client.patch(f"{API}/settings", json=body), 422, "invalid-setting")
        assert name in refused["detail"]
        assert file.read_bytes() == before


def test_a_file_that_is_broken_or_a_link_is_left_alone(
    client: httpx2.Client, file: Path, tmp_path: Path
) -> None:
    whole = file.read_bytes()
    body = {"values": {"answers.check": False}}
    try:
        file.write_text("{broken")
        problem(client.get(f"{API}/settings"), 409, "config-error")
        problem(client.patch(f"{API}/settings", json=body), 409, "config-error")
        assert file.read_text() == "{broken"
        file.unlink()
        (tmp_path / "elsewhere.json").write_bytes(whole)
        file.symlink_to(tmp_path / "elsewhere.json")
        problem(client.patch(f"{API}/settings", json=body), 409, "conflict")
        assert file.is_symlink()
    finally:
        file.unlink()
        file.write_bytes(whole)


def test_values_of_any_form_in_the_file_are_shown_as_json_holds_them(
    client: httpx2.Client, file: Path
) -> None:
    whole = file.read_bytes()
    odd = {"llm.response_format": None, "limits.session_cost": float("nan")}
    odd |= {"llm.offline.model": "m", "llm.mock.mode": "record_only"}
    odd["llm.mock.fixed_chat_responses"] = "\ud800" + 5_000 * "x"
    try:
        file.write_text(json.dumps(odd | json.loads(whole)))
        found = settings(client)
        assert found["limits.session_cost"]["stored"] in {None, 2.0}
        changed = client.patch(f"{API}/settings", json={"values": {"answers.check": False}})
        assert changed.status_code == 200, changed.text
        assert json.loads(file.read_text("utf-8"))["llm.response_format"] is None
        body = {"values": {"llm.model": "other"}}
        refused = problem(client.patch(f"{API}/settings", json=body), 409, "conflict")
        assert "llm.offline.model" in refused["detail"]
    finally:
        file.write_bytes(whole)


def test_the_checks_are_those_of_the_command(client: httpx2.Client) -> None:
    with ThreadPoolExecutor(2) as threads:  # who comes while they run has the same result
        response, other = threads.map(lambda _: client.post(f"{API}/doctor"), range(2))
    assert response.status_code == 200, response.text
    assert response.json() == other.json()
    checks = {item["name"]: item for item in response.json()["checks"]}
    assert checks["python"]["status"] == "ok"
    assert (checks["kernel"]["status"], "1+1 is 2" in checks["kernel"]["detail"]) == ("ok", True)
    assert checks["sandbox"]["status"] == "warn"
    where = "See 'What is promised, and what is not' in the documentation."
    assert checks["sandbox"]["fix"] == where
    assert "secret" not in response.text
