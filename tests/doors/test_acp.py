"""``taskweaver acp``, used by the client of the protocol's own package, without a model."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
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

from taskweaver.cli import run_server
from taskweaver.cli.main import commands
from taskweaver.config.config_mgt import env_name

pytestmark = [pytest.mark.measured, pytest.mark.anyio]

BEGUN = "print('be' + 'gun', flush=True)\nwhile True: pass"
"""Code that does not end, and says that it runs by a word that is not in it."""
OUTPUT = "tool_call_update"


@dataclass
class Desk:
    """An agent that runs, and the editor at it in a folder."""

    agent: Any
    editor: Editor
    folder: Path
    project: Path

    async def new(self) -> str:
        made = await self.agent.new_session(cwd=str(self.folder), mcp_servers=[])
        return str(made.session_id)

    async def ask(self, session_id: str, text: str, *blocks: Any) -> Any:
        import acp

        prompt = [acp.text_block(text), *blocks]
        async with asyncio.timeout(PATIENCE_S):
            return await self.agent.prompt(session_id=session_id, prompt=prompt)

    async def begin(self, session_id: str) -> asyncio.Future[Any]:
        """Run a cell that does not end; return its outcome to come."""
        running = asyncio.ensure_future(self.ask(session_id, f"```python\n{BEGUN}\n```"))
        await self.editor.until(lambda: "begun" in str(self.editor.of(session_id, OUTPUT)))
        return running

    async def cell(self, session_id: str, code: str) -> str:
        before = len(self.editor.text(session_id))
        assert (await self.ask(session_id, f"```python\n{code}\n```")).stop_reason == "end_turn"
        return self.editor.text(session_id)[before:]


async def refused(request: Awaitable[Any], code: int) -> str:
    """Check that a request is refused with a code; return the sentence."""
    import acp

    with pytest.raises(acp.RequestError) as found:
        await request
    assert found.value.code == code
    return str(found.value)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a project that asks before each cell."""
    config = {"llm.api_type": "offline", "execution.zygote": True}
    config |= {"code_interpreter.require_confirmation": True}
    return make_project(tmp_path_factory.mktemp("acp") / "p", config, has_table=False)


@pytest.fixture(scope="module")
async def desk(project: Path) -> AsyncIterator[Desk]:
    folder = project.parent / "own"
    folder.mkdir()
    (folder / "fruit.csv").write_text("Kind,Count\npear,2\nplum,6\n")
    async with editing(project, project.parent / "errors.log") as (agent, editor):
        yield Desk(agent, editor, folder, project)


async def test_a_question_is_answered_with_plan_thoughts_and_cell(desk: Desk) -> None:
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
    updates = desk.editor.of(session, OUTPUT)
    own = [one for one in updates if one["tool_call_id"] == begun["tool_call_id"]]
    assert own[0]["status"] == "in_progress"
    printed = [update["content"][1]["content"]["text"] for update in own if "content" in update]
    assert any("rows used: 2" in text for text in printed[:-1]), "while it ran"
    assert own[-1]["status"] == "completed"
    assert "4.0" in printed[-1]


async def test_a_figure_is_an_image_and_other_files_are_links(desk: Desk) -> None:
    session = await desk.new()
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
    await desk.cell(session, code + "open('made.txt', 'w').write('1')")
    made = desk.editor.of(session, "tool_call_update")[-1]["content"][2:]
    by_type = {part["content"]["type"]: part["content"] for part in made}
    assert by_type["image"]["mime_type"] == "image/png"
    assert base64.b64decode(by_type["image"]["data"]).startswith(b"\x89PNG")
    path = Path(by_type["resource_link"]["uri"].removeprefix("file://"))
    assert path.read_text() == "1"


async def test_a_cell_runs_only_as_the_person_allows(desk: Desk) -> None:
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


async def test_a_cancelled_prompt_ends_its_cell_or_its_question(desk: Desk) -> None:
    session, editor = await desk.new(), desk.editor
    await desk.cell(session, "kept = 40")
    running = await desk.begin(session)
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


async def test_sessions_answer_side_by_side_and_each_one_prompt(desk: Desk) -> None:
    one, two = await desk.new(), await desk.new()
    running = await desk.begin(one)
    assert "7" in await desk.cell(two, "3 + 4")
    assert "cancel it" in await refused(desk.ask(one, "hi"), -32600)
    fork = desk.agent.fork_session(session_id=one, cwd=str(desk.folder))
    assert "cancel it" in await refused(fork, -32600)
    await desk.agent.cancel(session_id=one)
    assert (await running).stop_reason == "cancelled"
    await desk.agent.close_session(session_id=two)
    assert "is not open" in await refused(desk.ask(two, "hi"), -32002)


async def test_files_come_with_a_prompt(desk: Desk) -> None:
    import acp

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
    picture = acp.image_block(base64.b64encode(b"gamma").decode(), "image/png")
    names = ("one.txt", "one-2.txt", "picture.png")
    code = "```python\n" + " + ".join(f"open({name!r}).read()" for name in names) + "\n```\n"
    await desk.ask(session, code, text, acp.text_block(" "), blob, picture)
    assert "alphabetagamma" in desk.editor.text(session)
    gone = acp.resource_link_block("gone", "file:///nowhere/gone.csv")
    assert "does not exist" in await refused(desk.ask(session, "x ", gone), -32602)
    sound = acp.audio_block("AAAA", "audio/wav")
    assert "no audio" in await refused(desk.ask(session, "x", sound), -32602)
    assert "is empty" in await refused(desk.ask(session, " "), -32602)


async def test_commands_are_offered_and_ask_no_model(desk: Desk) -> None:
    session, editor = await desk.new(), desk.editor
    await editor.until(lambda: editor.of(session, "available_commands_update"))
    (offered,) = editor.of(session, "available_commands_update")
    assert [one["name"] for one in offered["available_commands"]] == ["remember", "recall"]
    assert (await desk.ask(session, "/remember zebras count twice")).stop_reason == "end_turn"
    assert "zebras" in editor.text(session)
    before = len(editor.text(session))
    await desk.ask(session, "/recall zebras")
    assert "zebras count twice" in editor.text(session)[before:]
    assert await refused(desk.ask(session, "/remember "), -32603), "a fact has words"


async def test_servers_of_the_client_are_tools_of_its_session_alone(desk: Desk) -> None:
    from acp.schema import McpServerStdio, SseMcpServer

    clock = ["-m", "mcp_server_time"]
    server = McpServerStdio(name="clock", command=sys.executable, args=clock, env=[])
    code = "clock_convert_time('Europe/Paris', '12:00', 'Asia/Tokyo')['target']['timezone']"

    def clocks() -> list[psutil.Process]:
        below = psutil.Process().children(recursive=True)
        alive = [one for one in below if one.status() != psutil.STATUS_ZOMBIE]
        return [one for one in alive if one.cmdline()[-2:] == clock]

    folder, editor = str(desk.folder), desk.editor
    made = await desk.agent.new_session(cwd=folder, mcp_servers=[server, server])
    session, before = made.session_id, len(editor.asked)
    assert "Asia/Tokyo" in await desk.cell(session, code)
    assert len(editor.asked) == before + 2, "the cell, and the call"
    (titled,) = editor.of(session, "session_info_update")
    assert titled["title"].startswith("clock_convert_time")
    assert "NameError" in await desk.cell(await desk.new(), code)
    assert clocks()
    await desk.agent.close_session(session_id=session)
    assert not clocks()
    await desk.agent.load_session(cwd=folder, session_id=session, mcp_servers=[server])
    assert "Asia/Tokyo" in await desk.cell(session, code)
    old = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:1", headers=[])
    with_old = desk.agent.new_session(cwd=folder, mcp_servers=[old])
    assert "type sse" in await refused(with_old, -32602)


async def test_sessions_and_forks_are_listed_and_loaded_after_a_restart(
    desk: Desk, tmp_path: Path
) -> None:
    """The client goes while a cell of a third session runs, which keeps nothing from ending."""
    cold = {env_name("execution.zygote"): "false"}  # for two kernels
    async with editing(desk.project, tmp_path / "log", **cold) as (agent, editor):
        before = Desk(agent, editor, tmp_path, desk.project)
        session = await before.new()
        await before.cell(session, "kept = 20\nprint('seen')")
        forked = await agent.fork_session(session_id=session, cwd=str(tmp_path))
        fork = str(forked.session_id)
        assert "21" in await before.cell(fork, "kept += 1\nkept")
        endless = await before.new()
        running = await before.begin(endless)
    with pytest.raises(ConnectionError):
        await running

    agent, editor, folder = desk.agent, desk.editor, str(tmp_path)
    listed = (await agent.list_sessions(cwd=folder)).sessions
    assert [item.session_id for item in listed] == [endless, session, fork]
    assert (await agent.list_sessions(cwd="/")).sessions == []
    await agent.load_session(cwd=folder, session_id=session, mcp_servers=[])
    await editor.until(lambda: editor.text(session))
    assert "kept = 20" in editor.text(session, "user_message_chunk")
    (cell,) = editor.of(session, "tool_call")
    (ended,) = editor.of(session, OUTPUT)
    assert (cell["tool_call_id"], ended["status"]) == (ended["tool_call_id"], "completed")
    assert "seen" in str(ended["content"])
    assert "20" in await desk.cell(session, "kept")
    await agent.resume_session(cwd=folder, session_id=fork)
    assert editor.of(fork, "user_message_chunk") == []
    assert "21" in await desk.cell(fork, "kept")
    for name in ("nope", "../etc", f"{session}:nope", ""):
        load = agent.load_session(cwd=folder, session_id=name, mcp_servers=[])
        assert await refused(load, -32002)


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
        write, read = process.stdin, process.stdout

        def send(method: str, **params: object) -> None:
            fields = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            write.write(json.dumps(fields) + "\n")
            write.flush()

        for code, method, params in (
            (-32602, "session/prompt", {}),
            (-32602, "session/prompt", {"sessionId": "x", "prompt": "hi"}),
            (-32002, "session/prompt", {"sessionId": "x", "prompt": []}),
            (-32602, "session/new", {"cwd": "here", "mcpServers": []}),
            (-32602, "session/new", {"cwd": "/no/where", "mcpServers": []}),
            (-32601, "session/undo", {}),
        ):
            send(method, **params)  # type: ignore[arg-type]
            error = json.loads(read.readline())["error"]
            assert (error["code"], "Traceback" in str(error)) == (code, False), (method, params)
            assert error["message"]
        send("session/new", cwd=str(tmp_path), mcpServers=[])
        session = json.loads(read.readline())["result"]["sessionId"]
        block = {"type": "text", "text": f"```python\n{BEGUN}\n```"}
        send("session/prompt", sessionId=session, prompt=[block])
        while "begun" not in read.readline():
            continue
        below = psutil.Process(process.pid).children(recursive=True)
        assert below
        if end == "ends it":  # and reads no more
            read.close()
            process.terminate()
        else:
            write.close()
            assert all(json.loads(line)["jsonrpc"] == "2.0" for line in read)
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
    monkeypatch.setattr(run_server, "find_spec", lambda _name: None)
    result = CliRunner().invoke(commands, ["-p", str(project), "acp"])
    assert result.exit_code == 2
    assert 'python -m pip install "agent-client-protocol' in result.output
