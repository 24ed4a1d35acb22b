"""MCP over HTTP, used by the client of the package `mcp`, without a model."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import pytest
from agents import serving_agents
from command_line import CommandLine
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_calls import ask_for_mean, failure, over_http, over_stdio, value
from patience import PATIENCE_S
from served import Served, problem
from support import NO_STATES, make_project

from taskweaver.doors.mcp.door import McpDoor
from taskweaver.server import serving
from taskweaver.server.accounts import Quota

pytestmark = [pytest.mark.usefixtures("no_states"), pytest.mark.anyio]

CALLS: list[tuple[str, dict[str, str]]] = [
    ("run_code", {"code": "v = 1"}),
    ("fork", {"name": "f"}),
    ("run_code", {"code": "v = 100", "branch": "f"}),
    ("run_code", {"code": "v"}),
    ("run_code", {"code": "v", "branch": "f"}),
    ("fork", {"name": "f"}),
    ("run_code", {"code": "open('made.txt', 'w').write('1'); 1 / 0"}),
    ("run_code", {"code": "v", "branch": "nope"}),
    ("run_code", {"code": " "}),
    ("ask", {"question": " "}),
    ("ask", {"question": "what is the mean of the Count column in tiny.csv?"}),
    ("ask", {"question": "hi", "session": "nope"}),
    ("fork", {"session": "../../etc"}),
    ("remember", {"fact": "zebras count twice"}),
    ("memory_search", {"query": "zebras"}),
    ("memory_search", {"query": "zebras", "session": "nope"}),
    ("add_file", {"name": "a/up.txt", "content": "1"}),
    ("add_file", {"name": "..", "content": "1"}),
    ("sessions", {}),
]
"""Calls in a session that the first one starts."""

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def serving_tools(folder: Path) -> AbstractContextManager[Served]:
    more = lambda own: [McpDoor(own)]  # noqa: E731
    return serving_agents(folder, None, {"llm.api_type": "offline"}, more=more, has_table=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_tools(tmp_path_factory.mktemp("mcp")) as running:
        yield running


async def added(server: Served, name: str, **quota: int) -> str:
    return (await asyncio.to_thread(server.accounts.add, name, quota=Quota(**quota))).text


@asynccontextmanager
async def calling(server: Served, token: str = "", mode: str = "auto") -> AsyncIterator[Any]:
    async with (
        asyncio.timeout(PATIENCE_S),
        over_http(server.url, token or server.token.text, mode) as client,
    ):
        yield client


async def outcomes(client: Any) -> list[Any]:
    """Make the calls; return what they gave, with what differs by run left out."""
    capabilities = client.server_capabilities
    assert (capabilities.prompts, capabilities.resources is None) == (None, False)
    hints = [(tool.name, tool.annotations) for tool in (await client.list_tools()).tools]
    assert {name for name, hint in hints if hint.read_only_hint} == {"memory_search", "sessions"}
    writing = {name for name, hint in hints if hint.destructive_hint}
    assert writing == {"ask", "run_code", "add_file"}
    session, found = "", list[Any]()
    for tool, arguments in CALLS:
        place = {"session": session} if session and tool != "sessions" else {}
        result = await client.call_tool(tool, place | arguments)
        said = result.structured_content or {}
        session = session or said["session"]
        files = [Path(file).name for file in said.get("files", [])]
        listed = [{**item, "changed_at": ""} for item in said.get("result", [])]
        told = str((said | {"files": files, "result": listed}) if said else result.content)
        found.append((tool, result.is_error, told.replace(session, "SESSION")))
    return found


async def test_the_same_calls_give_the_same_over_both_transports(
    server: Served, tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", NO_STATES | {"llm.api_type": "offline"})
    program = over_stdio(command_line.program, project)
    async with asyncio.timeout(PATIENCE_S), mcp.Client(program) as here:
        stdio = await outcomes(here)
    async with calling(server, await added(server, "table")) as there:
        assert await outcomes(there) == stdio
    refused = [tool for tool, is_error, _ in stdio if is_error]
    assert refused[:5] == ["fork", "run_code", "run_code", "ask", "ask"]
    assert refused[5:] == ["fork", "memory_search", "add_file"]
    assert "zebras count twice" in next(told for tool, _, told in stdio if tool == "memory_search")
    values = [told for tool, _, told in stdio if tool == "run_code"]
    assert ["```\\n1\\n```" in values[2], "'main'" in values[2]] == [True, True]
    assert "```\\n100\\n```" in values[3]


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
async def test_a_conversation_with_progress_and_figures(server: Served, mode: str) -> None:
    async with calling(server, mode=mode) as client:
        result = await ask_for_mean(client)
        said = result.structured_content
        assert "**4**" in said["answer"]
        assert result.content[0].text == said["answer"]
        place = {"session": said["session"]}
        code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
        drawn = await client.call_tool("run_code", {"code": code, **place})
        assert [part.type for part in drawn.content] == ["text", "image", "resource_link"]
        assert drawn.structured_content["files"] == ["figure_1.png"]
        assert not (await value(client, "run_code", code="1 / 0", **place))["is_answered"]
        described = {tool.name: tool.description for tool in (await client.list_tools()).tools}
        first, second = described["remember"].splitlines()[2:4]
        assert (first, second.split(";")[0]) == ("Args:", "    fact: The fact, as a sentence")
        listed = await value(client, "sessions")
        assert said["session"] in {item["session"] for item in listed}
        assert "no branch 'x'" in await failure(client, "run_code", code="1", branch="x", **place)


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
async def test_files_go_up_by_a_tool_and_down_as_resources(server: Served, mode: str) -> None:
    small = await added(server, f"small-{mode}", disk_mb=1)
    async with calling(server, mode=mode) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "taskweaver://{session}/{branch}/{+path}"
        given = {"name": "fruit.csv", "content": "Kind,Count\npear,2\nplum,6\n"}
        place = await value(client, "add_file", **given)
        assert place.pop("name") == "fruit.csv"
        question = "what is the mean of the Count column in fruit.csv?"
        assert "**4**" in (await value(client, "ask", question=question, **place))["answer"]
        content = base64.b64encode(b"\xff\0").decode()
        await value(client, "add_file", name="b.bin", content=content, encoding="base64", **place)
        code = "open('made it.csv', 'w').write(str(open('b.bin', 'rb').read()))"
        made = await client.call_tool("run_code", {"code": code, **place})
        (link,) = [part for part in made.content if part.type == "resource_link"]
        assert (link.name, link.mime_type) == ("made it.csv", "text/csv")
        (read,) = (await client.read_resource(link.uri)).contents
        assert read.text == r"b'\xff\x00'"
        listed = {str(one.uri): one.name for one in (await client.list_resources()).resources}
        assert listed[str(link.uri)] == "made it.csv"
        address = str(link.uri).replace("made%20it.csv", "b.bin")
        assert listed[address] == "b.bin"
        (read,) = (await client.read_resource(address)).contents
        assert base64.b64decode(read.blob) == b"\xff\0"
        for wrong in ("none.csv", "..%2F..%2Facp.json", "%2Fetc%2Fpasswd"):
            with pytest.raises(mcp.MCPError):
                await client.read_resource(address.replace("b.bin", wrong))
    async with calling(server, small) as other:
        with pytest.raises(mcp.MCPError, match="not found"):
            await other.read_resource(address)
        assert (await other.list_resources()).resources == []
        full = await failure(other, "add_file", name="a", content="x" * (1 << 21))
        assert "disk_mb" in full
        assert await value(other, "sessions") == [], "no session is left of what was refused"


async def test_a_folder_with_very_many_files_is_listed_in_part(server: Served) -> None:
    async with calling(server, await added(server, "many")) as client:
        await value(client, "add_file", name="a", content="")
        (folder,) = (server.log.parent / "agents" / "many").glob("sessions/*/cwd")
        for number in range(10_000):
            (folder / str(number)).touch()
        assert len((await client.list_resources()).resources) == 10_000


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_is_given_up_ends_its_cell(
    server: Served, mode: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    async with calling(server, mode=mode) as client:
        session = (await value(client, "run_code", code="x = 1"))["session"]
        code = f"open({str(begun)!r}, 'w').close()\nwhile True: pass"
        arguments = {"code": code, "session": session}
        call = asyncio.create_task(client.call_tool("run_code", arguments))
        while not begun.exists():
            await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        again = await value(client, "run_code", code="x + 1", session=session)
        assert "2" in again["answer"]


def test_a_server_that_does_not_start_is_an_error_and_another_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = StreamableHTTPSessionManager.run

    @asynccontextmanager
    async def broken(self: StreamableHTTPSessionManager) -> AsyncIterator[None]:
        monkeypatch.setattr(StreamableHTTPSessionManager, "run", begun)
        raise OSError("no more files")
        yield

    monkeypatch.setattr(StreamableHTTPSessionManager, "run", broken)
    with serving_tools(tmp_path) as server:
        client = server.client(**ACCEPT)
        problem(client.post("/mcp", json=PING), 500, "internal")

        async def main() -> None:
            async with calling(server) as again:
                assert await value(again, "sessions") == []

        asyncio.run(main())


async def test_two_users_see_their_own_sessions_alone(server: Served) -> None:
    ann, bob = await added(server, "ann"), await added(server, "bob", kernels=0)
    async with calling(server, ann) as one, calling(server, bob) as two:
        session = (await value(one, "run_code", code="secret = 7"))["session"]
        calls: dict[str, dict[str, str]] = {"run_code": {"code": "secret"}, "fork": {}}
        calls |= {"ask": {"question": "hi"}, "remember": {"fact": "x"}}
        calls["memory_search"] = {"query": "secret"}
        for tool, arguments in calls.items():
            assert "not found" in await failure(two, tool, session=session, **arguments)
        assert await value(two, "sessions") == []
        assert await value(two, "memory_search", query="secret") == []
        assert "(kernels)" in await failure(two, "run_code", code="1")
        assert await value(two, "sessions") == [], "no empty session stays"
        again = value(one, "run_code", code="1 + 1", session=session)
        both = await asyncio.gather(again, value(one, "run_code", code="2 + 2"))
        assert ["2" in both[0]["answer"], "4" in both[1]["answer"]] == [True, True]
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}}
    opening |= {"clientInfo": {"name": "x", "version": "1"}}
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    opened = server.client(ann, **ACCEPT).post("/mcp", json=initialize)
    stolen = {"mcp-session-id": opened.headers["mcp-session-id"], **ACCEPT}
    assert server.client(bob, **stolen).post("/mcp", json=PING).status_code == 404
    assert server.client(ann, **stolen).post("/mcp", json=PING).status_code == 200


def test_a_server_that_stops_answers_its_calls_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "FINISH_S", 1.0)
    begun = tmp_path / "begun"

    async def main(running: Served) -> None:
        async with calling(running) as client:
            await client.list_tools()  # else it is asked for after the call, to check the result
            code = f"open({str(begun)!r}, 'w').close()\nwhile True: pass"
            call = asyncio.ensure_future(value(client, "run_code", code=code))
            while not begun.exists():
                await asyncio.sleep(0.05)
            running.server.should_exit = True
            cut = await call
            assert not cut["is_answered"]
            assert "interrupted" in cut["answer"]

    with serving_tools(tmp_path) as running:
        asyncio.run(main(running))
