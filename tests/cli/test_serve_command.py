"""``taskweaver serve`` as a program, and its users."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import httpx2
import psutil
import pytest
from click.testing import CliRunner
from command_line import CommandLine
from patience import PATIENCE_S
from served import problem, serving
from support import make_project

from taskweaver.cli import run_server
from taskweaver.cli.main import commands
from taskweaver.server.errors import ServerError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "p", {"llm.api_type": "offline"})


def run(project: Path, *arguments: str) -> str:
    done = CliRunner().invoke(commands, ["-p", str(project), "serve", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.measured
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_server_answers_with_its_token_until_a_signal(project: Path, number: int) -> None:
    with serving(project) as (process, line):
        match = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", line)
        assert match, line
        with httpx2.Client(base_url=match[1], timeout=PATIENCE_S, verify=False) as client:
            assert client.get("/api/v1/sessions").status_code == 401
            client.headers["Authorization"] = f"Bearer {match[2]}"
            made = client.post("/api/v1/sessions", json={"session_id": "one"})
            assert made.status_code == 201, made.text
            body = {"exec_id": "a", "code": "6 * 7"}
            answer = client.post("/api/v1/sessions/one/execute", json=body).json()
            assert answer["output"] == 42, answer
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive
    assert match[2] not in "".join(path.read_text() for path in project.glob("logs/*"))


def test_users_are_added_listed_and_removed(project: Path) -> None:
    assert "no users" in run(project, "users", "list")
    token = run(project, "users", "add", "ann", "--role", "admin", "--kernels", "2").strip()
    assert token.startswith("tw-")
    (ann,) = json.loads(run(project, "users", "list", "--json"))
    assert (ann["name"], ann["role"], ann["quota"]["kernels"]) == ("ann", "admin", 2)
    assert "ann" in run(project, "users", "list")
    assert run(project, "users", "token", "ann").strip() != token
    assert "removed" in run(project, "users", "remove", "ann")
    again = CliRunner().invoke(commands, ["-p", str(project), "serve", "users", "remove", "ann"])
    assert (again.exit_code, "There is no user ann" in again.output) == (2, True)


def test_with_users_there_is_no_other_token_and_actions_are_recorded(
    project: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    token = run(project, "users", "add", "ann").strip()
    with serving(project, program=command_line.program) as (process, line):
        address = re.search(r"http://\S+", line)
        assert address
        assert "token" not in line
        with httpx2.Client(base_url=address[0], timeout=PATIENCE_S, verify=False) as client:
            headers = {"X-API-Key": token}
            made = client.post("/api/v1/sessions", json={"session_id": "a"}, headers=headers)
            assert made.status_code == 201, made.text
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    (entry,) = json.loads(run(project, "audit", "--json"))
    assert (entry["user"], entry["action"]) == ("ann", "POST /api/v1/sessions")
    (row,) = [line for line in run(project, "audit").splitlines() if " ann " in line]
    assert row.split()[4:] == ["POST", "/api/v1/sessions", "/api/v1/sessions", "201"]


def test_several_users_need_walls() -> None:
    run_server.require_walls(1, "none")
    run_server.require_walls(9, "bwrap")
    with pytest.raises(ServerError, match="need the sandbox bwrap"):
        run_server.require_walls(2, "landlock")


def test_users_who_come_later_need_walls(project: Path, command_line: CommandLine) -> None:
    with serving(project, program=command_line.program) as (_, line):
        match = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", line)
        assert match, line
        tokens = [run(project, "users", "add", name).strip() for name in ("ann", "bob")]
        with httpx2.Client(base_url=match[1], timeout=PATIENCE_S, verify=False) as client:
            for token in tokens * 2:
                refused = client.get("/api/v1/sessions", headers={"X-API-Key": token})
                problem(refused, 403, "users-not-separated")
                assert "Install bubblewrap" in refused.json()["detail"]
            own = client.get("/api/v1/sessions", headers={"X-API-Key": match[2]})
            assert own.status_code == 200
    log = "".join(path.read_text() for path in project.glob("logs/*"))
    assert [log.count(f"Requests of {name} are refused") for name in ("ann", "bob")] == [1, 1]


def test_packages_that_are_missing_are_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_server, "find_spec", lambda _name: None)
    done = CliRunner().invoke(commands, ["-p", str(project), "serve"])
    assert done.exit_code == 2
    assert "pip install" in done.output
    assert "uvicorn" in done.output
