"""``taskweaver mcp``: the project, asked by the official client over stdio, without a model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from command_line import CommandLine
from mcp_calls import ask_for_mean, failure, over_stdio, value
from patience import PATIENCE_S
from support import NO_STATES, make_project

from taskweaver.cli import run_server
from taskweaver.cli.main import commands

pytestmark = pytest.mark.measured

mcp = pytest.importorskip("mcp")


def offline_project(folder: Path) -> Path:
    return make_project(folder / "p", NO_STATES | {"llm.api_type": "offline"})


def test_questions_and_code_are_answered_and_what_code_writes_is_no_protocol(
    tmp_path: Path, command_line: CommandLine
) -> None:
    """The tools themselves are called over both transports in `doors/test_mcp_over_http.py`."""
    transport = over_stdio(command_line.program, offline_project(tmp_path))
    problems: list[object] = []

    async def take(message: object) -> None:
        problems.extend([message] * isinstance(message, Exception))

    async def talk() -> None:
        async with asyncio.timeout(100), mcp.Client(transport, message_handler=take) as client:
            said = (await ask_for_mean(client)).structured_content
            assert "4" in said["answer"]
            session = said["session"]
            code = "open('made.txt', 'w').write('1')"
            (file,) = (await value(client, "run_code", code=code, session=session))["files"]
            assert Path(file).read_text() == "1"
            noisy = "import os, sys; os.write(1, b'raw'); sys.__stdout__.write('x')"
            noisy += "; os.system('ls')"
            assert (await value(client, "run_code", code=noisy, session=session))["is_answered"]
            failed = await value(client, "run_code", code="1 / 0", session=session)
            assert not failed["is_answered"]
            assert "not found" in await failure(client, "ask", question="hi", session="../../etc")
        assert problems == []

    before = psutil.Process().children(recursive=True)
    asyncio.run(talk())
    left = [one for one in psutil.Process().children(recursive=True) if one not in before]
    assert psutil.wait_procs(left, timeout=PATIENCE_S)[1] == []


def test_the_program_ends_with_its_input_and_writes_nothing_else(tmp_path: Path) -> None:
    """What an import writes would be seen, too."""
    project = offline_project(tmp_path)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client["clientInfo"] = {"name": "test", "version": "1"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    done = subprocess.run(
        [sys.executable, "-m", "taskweaver", "-p", str(project), "mcp"],
        input=f"no message\n{json.dumps(asked)}\n", capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert {message["jsonrpc"] for message in messages} == {"2.0"}
    (answer,) = [message["result"] for message in messages if message.get("id") == 1]
    assert "tools" in answer["capabilities"]
    assert "taskweaver: model: " in done.stderr


def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_server, "find_spec", lambda _name: None)
    result = CliRunner().invoke(commands, ["-p", str(offline_project(tmp_path)), "mcp"])
    assert result.exit_code == 2
    assert 'python -m pip install "mcp>=' in result.output
