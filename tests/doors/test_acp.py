"""``taskweaver acp``, used by the client of the protocol's own package, without a model."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp_client import Editor, command, editing, environment
from click.testing import CliRunner
from command_line import CommandLine
from patience import PATIENCE_S
from support import make_project

from taskweaver.cli import joining
from taskweaver.cli.main import commands
from taskweaver.config.config_mgt import env_name

pytestmark = pytest.mark.measured

BEGUN = "print('be' + 'gun', flush=True)\nwhile True: pass"
"""Code that does not end, and says that it runs by a word that is not in it."""


@dataclass
class Desk:
    """An agent that runs, and the editor at it.

    Attributes:
        run: Runs a coroutine to its end.
        agent: The connection.
        editor: The editor.
        folder: Folder that the editor works in.
        project: The project.
    """

    run: Callable[[Any], Any]
    agent: Any
    editor: Editor
    folder: Path
    project: Path

    async def new(self) -> str:
        """Make a session; return its id."""
        made = await self.agent.new_session(cwd=str(self.folder), mcp_servers=[])
        return str(made.session_id)

    async def ask(self, session_id: str, text: str, *blocks: Any) -> Any:
        """Send a prompt, and return its outcome."""
        import acp

        prompt = [acp.text_block(text), *blocks]
        async with asyncio.timeout(PATIENCE_S):
            return await self.agent.prompt(session_id=session_id, prompt=prompt)

    async def cell(self, session_id: str, code: str) -> str:
        """Run a cell, and return the answer."""
        before = len(self.editor.text(session_id))
        assert (await self.ask(session_id, f"```python\n{code}\n```")).stop_reason == "end_turn"
        return self.editor.text(session_id)[before:]

    async def refused(self, request: Awaitable[Any], code: int) -> str:
        """Check that a request is refused with a code; return the sentence."""
        import acp

        with pytest.raises(acp.RequestError) as found:
            await request
        assert found.value.code == code
        return str(found.value)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a project that asks before each cell."""
    config = {
        "llm.api_type": "offline",
        "code_interpreter.require_confirmation": True,
        "execution.zygote": True,
    }
    return make_project(tmp_path_factory.mktemp("acp") / "p", config, has_table=False)


@pytest.fixture(scope="module")
def desk(project: Path) -> Iterator[Desk]:
    folder = project.parent / "own"
    folder.mkdir()
    (folder / "fruit.csv").write_text("Kind,Count\npear,2\nplum,6\n")
    with asyncio.Runner() as runner:
        context = editing(project, project.parent / "errors.log")
        agent, editor = runner.run(context.__aenter__())
        try:
            yield Desk(runner.run, agent, editor, folder, project)
        finally:
            runner.run(context.__aexit__(None, None, None))


def test_a_question_is_answered_with_plan_thoughts_and_cell(desk: Desk) -> None:
    async def main() -> None:
        session = await desk.new()
        asked = await desk.ask(session, "what is the mean of the Count column in fruit.csv?")
        assert asked.stop_reason == "end_turn"
        assert "**4**" in desk.editor.text(session)
        assert "the columns and values" in desk.editor.text(session, "agent_thought_chunk")
        first, *_, last = desk.editor.of(session, "plan")
        assert [entry["status"] for entry in first["entries"]] == ["in_progress", "pending"]
        assert {entry["status"] for entry in last["entries"]} == {"completed"}
        begun = desk.editor.of(session, "tool_call")[-1]
        assert (begun["status"], begun["kind"]) == ("pending", "execute")
        assert "read_table('fruit.csv')" in begun["raw_input"]["code"]
        own = [
            update
            for update in desk.editor.of(session, "tool_call_update")
            if update["tool_call_id"] == begun["tool_call_id"]
        ]
        assert own[0]["status"] == "in_progress"
        printed = [update["content"][1]["content"]["text"] for update in own if "content" in update]
        assert any("rows used: 2" in text for text in printed[:-1]), "while it ran"
        assert own[-1]["status"] == "completed"
        assert "4.0" in printed[-1]

    desk.run(main())


def test_a_figure_is_an_image_and_other_files_are_links(desk: Desk) -> None:
    async def main() -> None:
        session = await desk.new()
        code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
        await desk.cell(session, code + "open('made.txt', 'w').write('1')")
        made = desk.editor.of(session, "tool_call_update")[-1]["content"][2:]
        by_type = {part["content"]["type"]: part["content"] for part in made}
        assert by_type["image"]["mime_type"] == "image/png"
        assert base64.b64decode(by_type["image"]["data"]).startswith(b"\x89PNG")
        path = Path(by_type["resource_link"]["uri"].removeprefix("file://"))
        assert path.read_text() == "1"

    desk.run(main())


def test_a_cell_runs_only_as_the_person_allows(desk: Desk) -> None:
    async def main() -> None:
        session, editor = await desk.new(), desk.editor
        editor.asked.clear()
        editor.decide("no")
        assert "did not" in (await desk.cell(session, "kept = 1")).lower()
        (asked,) = editor.asked
        last = editor.of(session, "tool_call_update")[-1]
        assert (last["status"], last["tool_call_id"]) == ("failed", asked["call"])
        editor.decide("always")
        assert "False" in await desk.cell(session, "'kept' in globals()")
        editor.decide("no")
        assert "3" in await desk.cell(session, "1 + 2"), "allowed for the whole session"
        assert len(editor.asked) == 2
        editor.decide("yes")

    desk.run(main())


def test_a_cancelled_prompt_ends_its_cell_or_its_question(desk: Desk) -> None:
    async def main() -> None:
        session, editor = await desk.new(), desk.editor
        await desk.cell(session, "kept = 40")
        running = asyncio.ensure_future(desk.ask(session, f"```python\n{BEGUN}\n```"))
        await editor.until(lambda: "begun" in str(editor.updates[-1]))
        await desk.agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        assert "42" in await desk.cell(session, "kept + 2")
        editor.answer = None
        editor.asked.clear()
        waiting = asyncio.ensure_future(desk.ask(session, "```python\nkept = 0\n```"))
        await editor.until(lambda: editor.asked)
        await desk.agent.cancel(session_id=session)
        assert (await waiting).stop_reason == "cancelled"
        editor.decide("yes")
        assert "40" in await desk.cell(session, "kept")

    desk.run(main())


def test_sessions_answer_side_by_side_and_each_one_prompt(desk: Desk) -> None:
    async def main() -> None:
        one, two = await desk.new(), await desk.new()
        running = asyncio.ensure_future(desk.ask(one, f"```python\n{BEGUN}\n```"))
        await desk.editor.until(lambda: "begun" in str(desk.editor.of(one, "tool_call_update")))
        assert "7" in await desk.cell(two, "3 + 4")
        assert "cancel it" in await desk.refused(desk.ask(one, "hi"), -32600)
        fork = desk.agent.fork_session(session_id=one, cwd=str(desk.folder))
        assert "cancel it" in await desk.refused(fork, -32600)
        await desk.agent.cancel(session_id=one)
        assert (await running).stop_reason == "cancelled"
        await desk.agent.close_session(session_id=two)
        assert "is not open" in await desk.refused(desk.ask(two, "hi"), -32002)

    desk.run(main())


def test_files_come_with_a_prompt(desk: Desk) -> None:
    import acp

    async def main() -> None:
        session = await desk.new()
        there = desk.project.parent / "with space.csv"
        there.write_text("Kind,Count\na,1\nb,8\n")
        link = acp.resource_link_block("with space.csv", there.as_uri())
        await desk.ask(session, "what is the total of the Count column in ", link)
        assert "**9**" in desk.editor.text(session)
        text = acp.resource_block(acp.embedded_text_resource("zed:///n/one.txt", "alpha"))
        blob = acp.resource_block(
            acp.embedded_blob_resource("file:///x/one.txt", base64.b64encode(b"beta").decode())
        )
        code = "```python\nopen('one.txt').read() + open('one-2.txt').read()\n```\n"
        await desk.ask(session, code, text, acp.text_block(" "), blob)
        assert "alphabeta" in desk.editor.text(session)
        gone = acp.resource_link_block("gone", "file:///nowhere/gone.csv")
        assert "does not exist" in await desk.refused(desk.ask(session, "x ", gone), -32602)
        picture = acp.image_block("AAAA", "image/png")
        assert "no image" in await desk.refused(desk.ask(session, "x", picture), -32602)
        assert "is empty" in await desk.refused(desk.ask(session, " "), -32602)

    desk.run(main())


def test_sessions_and_forks_are_listed_and_loaded_after_a_restart(
    desk: Desk, tmp_path: Path
) -> None:
    """The client goes while a cell of a third session runs, which keeps nothing from ending."""

    async def before() -> tuple[str, str, str]:
        cold = {env_name("execution.zygote"): "false"}  # for two kernels
        started = editing(desk.project, tmp_path / "log", **cold)
        async with started as (agent, editor):
            own = Desk(lambda work: work, agent, editor, tmp_path, desk.project)
            session = await own.new()
            await own.cell(session, "kept = 20\nprint('seen')")
            forked = await agent.fork_session(session_id=session, cwd=str(tmp_path))
            fork = str(forked.session_id)
            assert "21" in await own.cell(fork, "kept += 1\nkept")
            endless = await own.new()
            running = asyncio.ensure_future(own.ask(endless, f"```python\n{BEGUN}\n```"))
            await editor.until(lambda: "begun" in str(editor.of(endless, "tool_call_update")))
        with pytest.raises(ConnectionError):
            await running
        return session, fork, endless

    async def after(session: str, fork: str, endless: str) -> None:
        agent, editor, folder = desk.agent, desk.editor, str(tmp_path)
        listed = (await agent.list_sessions(cwd=folder)).sessions
        assert [item.session_id for item in listed] == [endless, session, fork]
        assert (await agent.list_sessions(cwd="/")).sessions == []
        assert "cursor" in await desk.refused(agent.list_sessions(cursor="x"), -32602)
        await agent.load_session(cwd=folder, session_id=session, mcp_servers=[])
        await editor.until(lambda: editor.text(session))
        assert "kept = 20" in editor.text(session, "user_message_chunk")
        (cell,) = editor.of(session, "tool_call")
        (ended,) = editor.of(session, "tool_call_update")
        assert cell["tool_call_id"] == ended["tool_call_id"]
        assert ended["status"] == "completed"
        assert "seen" in str(ended["content"])
        assert "20" in await desk.cell(session, "kept")
        await agent.resume_session(cwd=folder, session_id=fork)
        assert editor.of(fork, "user_message_chunk") == []
        assert "21" in await desk.cell(fork, "kept")
        for name in ("nope", "../etc", f"{session}:nope", ""):
            load = agent.load_session(cwd=folder, session_id=name, mcp_servers=[])
            assert await desk.refused(load, -32002)

    desk.run(after(*asyncio.run(before())))


def talk(process: subprocess.Popen[str], line: str) -> dict[str, Any]:
    """Send a line, and return the next message."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


@pytest.mark.parametrize("end", ["ends it", pytest.param("closes", marks=pytest.mark.long)])
def test_malformed_requests_are_told_and_a_client_that_goes_ends_all(
    tmp_path: Path, end: str
) -> None:
    project = make_project(tmp_path / "p", {"llm.api_type": "offline"}, has_table=False)
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            command(project), stdin=-1, stdout=-1, stderr=log, text=True, env=environment()
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None

        def request(method: str, params: object, number: object = 1) -> str:
            fields = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            return json.dumps(fields)

        if end == "ends it":
            for line, code in {
                request("session/prompt", {}): -32602,
                request("session/prompt", {"sessionId": "x", "prompt": "hi"}): -32602,
                request("session/prompt", {"sessionId": "x", "prompt": []}): -32002,
                request("session/new", {"cwd": "here", "mcpServers": []}): -32602,
                request("session/new", {"cwd": "/no/where", "mcpServers": []}): -32602,
                request("session/undo", {}): -32601,
            }.items():
                error = talk(process, line)["error"]
                assert (error["code"], "Traceback" in str(error)) == (code, False), line[:80]
                assert error["message"]
        made = talk(process, request("session/new", {"cwd": str(tmp_path), "mcpServers": []}))
        block = {"type": "text", "text": f"```python\n{BEGUN}\n```"}
        params = {"sessionId": made["result"]["sessionId"], "prompt": [block]}
        process.stdin.write(request("session/prompt", params) + "\n")
        process.stdin.flush()
        while "begun" not in process.stdout.readline():
            continue
        below = psutil.Process(process.pid).children(recursive=True)
        assert below
        if end == "ends it":  # and reads no more
            process.stdout.close()
            os.kill(process.pid, signal.SIGTERM)
        else:
            process.stdin.close()
            for line in process.stdout:
                assert json.loads(line)["jsonrpc"] == "2.0"
        assert process.wait(PATIENCE_S) == 0
    _, alive = psutil.wait_procs(below, timeout=PATIENCE_S)
    assert not alive
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_without_the_package_or_an_editor_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", {"llm.api_type": "offline"})
    done = command_line.run("-p", str(project), "acp", env=environment())
    assert done.returncode == 2
    assert done.stdout == ""
    assert "started by an editor" in done.stderr
    monkeypatch.setattr(joining, "find_spec", lambda _name: None)
    result = CliRunner().invoke(commands, ["-p", str(project), "acp"])
    assert result.exit_code == 2
    assert 'python -m pip install "agent-client-protocol' in result.output
