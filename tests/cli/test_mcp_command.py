"""``taskweaver mcp``: the project, asked by the official client over stdio, without a model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from live_folders import paths_below
from mcp_calls import ask_for_mean, failure, over_stdio, value
from patience import PATIENCE_S
from support import NO_STATES, make_project
from warm_commands import WarmCommands

from taskweaver.cli.conversations import mcp_stdio
from taskweaver.cli.main import commands

pytestmark = pytest.mark.measured

mcp = pytest.importorskip("mcp")


def offline_project(folder: Path) -> Path:
    return make_project(folder / "p", NO_STATES | {"llm.api_type": "offline"})


def drive(
    folder: Path, warm_commands: WarmCommands, steps: Callable[[Any], Awaitable[None]]
) -> None:
    """Take steps with a client; what the server writes is protocol, or the client would fail."""
    project = offline_project(folder)
    transport = over_stdio(warm_commands.program, project)  # what it starts stays for other tests

    async def main() -> None:
        problems: list[object] = []

        async def take(message: object) -> None:
            if isinstance(message, Exception):
                problems.append(message)

        async with asyncio.timeout(100), mcp.Client(transport, message_handler=take) as client:
            await steps(client)
        assert problems == []

    before = psutil.Process().children(recursive=True)
    asyncio.run(main())
    left = [one for one in psutil.Process().children(recursive=True) if one not in before]
    _, alive = psutil.wait_procs(left, timeout=PATIENCE_S)
    assert not alive


async def ask(client: Any) -> str:
    """Ask a question; return its session."""
    said = (await ask_for_mean(client)).structured_content
    assert "4" in said["answer"]
    return str(said["session"])


async def run_and_fork(client: Any, session: str) -> None:
    """Run code in a session and in a branch of it."""
    ran = await value(client, "run_code", code="x = 20\nprint('hi')\nx + 1", session=session)
    assert "21" in ran["answer"]
    assert "hi" in ran["answer"]
    assert ran["session"] == session
    branch = (await value(client, "fork", session=session, name="other"))["branch"]
    assert branch == "other"
    there = await value(client, "run_code", code="x += 1; x", session=session, branch=branch)
    assert "21" in there["answer"]
    assert there["branch"] == "other"
    here = await value(client, "run_code", code="x", session=session, branch="main")
    assert "20" in here["answer"]
    code = "open('made.txt', 'w').write('1')"
    (file,) = (await value(client, "run_code", code=code, session=session))["files"]
    assert Path(file).read_text() == "1"


async def draw_and_remember(client: Any, session: str) -> None:
    drawn = {"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"}
    pictured = await client.call_tool("run_code", drawn | {"session": session})
    assert [part.type for part in pictured.content] == ["text", "image"]
    assert pictured.content[1].mime_type == "image/png"
    await value(client, "remember", fact="zebras count twice", session=session)
    assert await value(client, "memory_search", query="zebras count", session=session)
    found = await value(client, "memory_search", query="mean", session=session)
    assert any("mean of the Count" in item["text"] for item in found)
    assert await value(client, "memory_search", query="giraffe") == []


async def call_at_one_time(client: Any, session: str) -> None:
    """Make calls of a session at one time, which wait for each other."""
    at_once = [value(client, "run_code", code="x += 1; x", session=session) for _ in range(3)]
    forked = value(client, "fork", session=session, name="b")
    *ran, fork = await asyncio.gather(*at_once, forked)
    assert all(one["is_answered"] for one in ran)
    assert fork == {"branch": "b"}
    here = await value(client, "run_code", code="x", session=session, branch="main")
    assert "23" in here["answer"]


async def give_up(client: Any, session: str, folder: Path) -> None:
    """Give up a call, which ends its cell."""
    code = "import time\nopen('begun', 'w').close()\nwhile True: time.sleep(0.1)"
    call = asyncio.create_task(client.call_tool("run_code", {"code": code, "session": session}))
    while not paths_below(folder, "begun"):
        await asyncio.sleep(0.05)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    again = await value(client, "run_code", code="x + 1", session=session)
    assert "24" in again["answer"]


async def go_wrong(client: Any, session: str) -> None:
    """Ask for what is not there, and run what fails or writes where only messages may be."""
    for name in ("nope", "../../etc"):
        assert "not found" in await failure(client, "ask", question="hi", session=name)
    assert "says something" in await failure(client, "ask", question=" ")
    failed = await value(client, "run_code", code="1 / 0", session=session)
    assert not failed["is_answered"]
    assert "ZeroDivisionError" in failed["answer"]
    nowhere = {"code": "1", "session": session, "branch": "x"}
    assert "no branch 'x'" in await failure(client, "run_code", **nowhere)
    noisy = "import os, sys; os.write(1, b'raw'); sys.__stdout__.write('x'); os.system('ls')"
    assert (await value(client, "run_code", code=noisy, session=session))["is_answered"]


def test_a_conversation_with_all_its_tools_calls_at_one_time_one_given_up_and_failures(
    tmp_path: Path, warm_commands: WarmCommands
) -> None:
    async def steps(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert sorted(tool.name for tool in tools) == [
            "ask", "fork", "memory_search", "remember", "run_code", "sessions",
        ]  # fmt: skip
        session = await ask(client)
        await run_and_fork(client, session)
        await draw_and_remember(client, session)
        await call_at_one_time(client, session)
        await give_up(client, session, tmp_path)
        await go_wrong(client, session)
        (listed,) = await value(client, "sessions")
        assert listed["session"] == session

    drive(tmp_path, warm_commands, steps)


def test_the_program_ends_with_its_input_and_writes_nothing_else(tmp_path: Path) -> None:
    """It is started anew: what an import writes would be seen, too."""
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
    monkeypatch.setattr(mcp_stdio, "find_spec", lambda _name: None)
    result = CliRunner().invoke(commands, ["-p", str(offline_project(tmp_path)), "mcp"])
    assert result.exit_code == 2
    assert 'python -m pip install "mcp>=' in result.output
