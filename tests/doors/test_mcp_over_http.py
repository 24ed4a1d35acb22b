"""MCP over HTTP, used by the client of the package `mcp`, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp
import pytest
from command_line import CommandLine
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_calls import ask_for_mean, failure, over_http, over_stdio, value
from patience import PATIENCE_S
from served import Served, problem, served
from support import NO_STATES, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.doors.mcp.door import McpDoor
from taskweaver.server import serving
from taskweaver.server.accounts import Accounts, Quota
from taskweaver.server.agents.index import FileIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door

pytestmark = pytest.mark.usefixtures("no_states")

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
    ("sessions", {}),
]
"""Calls in a session that the first one starts."""

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_tools(tmp_path_factory.mktemp("mcp")) as running:
        yield running


@contextmanager
def serving_tools(folder: Path) -> Iterator[Served]:
    """Serve a project without a model."""
    project = make_project(folder / "p", {"llm.api_type": "offline"})

    def doors(accounts: Accounts) -> list[Door]:
        sessions = AgentSessions(app, accounts, folder / "agents", FileIndexes())
        return [AgentApi(sessions), McpDoor(sessions)]

    with TaskWeaverApp(project) as app, served(doors, folder) as running:
        yield running


@asynccontextmanager
async def calling(server: Served, token: str = "", mode: str = "auto") -> AsyncIterator[Any]:
    """Give a client with a token."""
    async with (
        asyncio.timeout(PATIENCE_S),
        over_http(server.url, token or server.token.text, mode) as client,
    ):
        yield client


async def outcomes(client: Any) -> list[Any]:
    """Make the calls; return what they gave, with what differs by run left out."""
    capabilities = client.server_capabilities
    assert (capabilities.prompts, capabilities.resources) == (None, None)
    hints = [(tool.name, tool.annotations) for tool in (await client.list_tools()).tools]
    assert {name for name, hint in hints if hint.read_only_hint} == {"memory_search", "sessions"}
    assert {name for name, hint in hints if hint.destructive_hint} == {"ask", "run_code"}
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


def test_the_same_calls_give_the_same_over_both_transports(
    server: Served, tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", NO_STATES | {"llm.api_type": "offline"})
    token = server.accounts.add("table").text

    async def main() -> tuple[list[Any], list[Any]]:
        stdio = over_stdio(command_line.program, project)
        async with asyncio.timeout(PATIENCE_S), mcp.Client(stdio) as here:
            first = await outcomes(here)
        async with calling(server, token) as there:
            return first, await outcomes(there)

    stdio, http = asyncio.run(main())
    assert stdio == http
    values = [told for tool, _, told in stdio if tool == "run_code"]
    assert ["```\\n1\\n```" in values[2], "'main'" in values[2]] == [True, True]
    assert "```\\n100\\n```" in values[3]


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
def test_a_conversation_with_progress_figures_and_a_fork(server: Served, mode: str) -> None:
    async def main() -> None:
        async with calling(server, mode=mode) as client:
            result = await ask_for_mean(client)
            said = result.structured_content
            assert "**4**" in said["answer"]
            assert result.content[0].text == said["answer"]
            place = {"session": said["session"]}
            code = "x = 20\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
            drawn = await client.call_tool("run_code", {"code": code, **place})
            assert [part.type for part in drawn.content] == ["text", "image"]
            assert drawn.structured_content["files"] == ["figure_1.png"]
            branch = (await value(client, "fork", name="other", **place))["branch"]
            there = await value(client, "run_code", code="x += 1; x", branch=branch, **place)
            assert "21" in there["answer"]
            assert "20" in (await value(client, "run_code", code="x", **place))["answer"]
            await value(client, "remember", fact="zebras count twice", **place)
            assert await value(client, "memory_search", query="zebras", **place)
            assert not (await value(client, "run_code", code="1 / 0", **place))["is_answered"]
            described = {tool.name: tool.description for tool in (await client.list_tools()).tools}
            assert described["remember"].splitlines()[2:4] == [
                "Args:",
                "    fact: The fact, as a sentence.",
            ]
            listed = await value(client, "sessions")
            assert said["session"] in {item["session"] for item in listed}
            assert "no branch 'x'" in await failure(
                client, "run_code", code="1", branch="x", **place
            )

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_that_is_given_up_ends_its_cell(server: Served, mode: str, tmp_path: Path) -> None:
    async def main() -> None:
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

    asyncio.run(main())


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


def test_two_users_see_their_own_sessions_alone(server: Served) -> None:
    ann = server.accounts.add("ann").text
    bob = server.accounts.add("bob", quota=Quota(kernels=0)).text

    async def main() -> None:
        async with calling(server, ann) as one, calling(server, bob) as two:
            session = (await value(one, "run_code", code="secret = 7"))["session"]
            for tool, arguments in {
                "run_code": {"code": "secret"},
                "ask": {"question": "hi"},
                "fork": {},
                "remember": {"fact": "x"},
                "memory_search": {"query": "secret"},
            }.items():
                assert "not found" in await failure(two, tool, session=session, **arguments)
            assert await value(two, "sessions") == []
            assert await value(two, "memory_search", query="secret") == []
            assert "may have no more" in await failure(two, "run_code", code="1")
            both = await asyncio.gather(
                value(one, "run_code", code="1 + 1", session=session),
                value(one, "run_code", code="2 + 2"),
            )
            assert ["2" in both[0]["answer"], "4" in both[1]["answer"]] == [True, True]

    asyncio.run(main())
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
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
