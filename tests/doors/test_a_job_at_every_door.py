"""A user's job at every door, by foreign clients: files in and out, a loop stopped, a fork."""

from __future__ import annotations

import asyncio
import base64
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import httpx2
import mcp
import openai
import pytest
from acp_client import editing
from agents import API, events_of, serving_agents
from mcp_calls import over_http, over_stdio, value
from patience import PATIENCE_S
from served import Served
from support import make_project

from taskweaver.doors.mcp.door import McpDoor

OFFLINE = {"llm.api_type": "offline", "execution.zygote": True}
FRUIT = "Kind,Count\npear,2\nplum,6\n"
MEAN = "what is the mean of the Count column in fruit.csv?"
MAKES = (
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
    "open('made.csv', 'w').write('a\\n1\\n')\nv = 1"
)
ENDLESS = """import time
n = 0
while True:
    n += 1
    print("ti" + "ck", n, flush=True)
    time.sleep(0.1)"""
PRINTED = "tick 3"
LINK = re.compile(r"\[[\w.]+]\((http://\S+)\)")


def cell(code: str) -> str:
    """Return a question that runs code."""
    return f"```python\n{code}\n```"


class Hands(Protocol):
    """A client at a door, with one chat. Needs no more than the door's own protocol."""

    async def bring(self, name: str, content: str) -> None:
        """Give the chat a file."""

    async def ask(self, question: str) -> str:
        """Return the answer to a question."""

    async def made(self) -> dict[str, bytes]:
        """Return the files of the newest answer."""

    async def stop(self, question: str, printed: str) -> None:
        """Ask, and stop the answer when its cell printed a text."""

    async def fork(self) -> Hands:
        """Return a client at a fork of the chat."""


class AgentHands:
    """The agent API, by any client of HTTP."""

    def __init__(self, client: httpx2.Client, session: str, branch: str = "main") -> None:
        self.client, self.session, self.branch = client, session, branch
        self.of = {"branch": branch}

    async def bring(self, name: str, content: str) -> None:
        await asyncio.to_thread(self._put, name, content)

    def _put(self, name: str, content: str) -> None:
        headers = {"Content-Type": "text/csv"}
        self.client.put(
            f"{self.session}/files/{name}",
            content=content.encode(),
            headers=headers,
            params=self.of,
        ).raise_for_status()

    async def ask(self, question: str) -> str:
        return await asyncio.to_thread(self._ask, question, "")

    def _ask(self, question: str, printed: str) -> str:
        body = {"text": question, "stream": True, **self.of}
        with self.client.stream("POST", f"{self.session}/messages", json=body) as response:
            for _, kind, data in events_of(response):
                if printed and printed in data.get("msg", ""):
                    self.client.post(f"{self.session}/stop", json=self.of).raise_for_status()
                    printed = ""
                if kind == "message":
                    self.state = data["state"]
        return str(data["answer"])

    async def made(self) -> dict[str, bytes]:
        listed = self.client.get(f"{self.session}/artifacts", params=self.of).json()["artifacts"]
        path = f"{self.session}/files"
        return {
            one["path"]: self.client.get(f"{path}/{one['path']}", params=self.of).content
            for one in listed
        }

    async def stop(self, question: str, printed: str) -> None:
        await asyncio.to_thread(self._ask, question, printed)
        assert self.state == "stopped"

    async def fork(self) -> AgentHands:
        made = self.client.post(f"{self.session}/branches", json={"source": self.branch})
        return AgentHands(self.client, self.session, made.raise_for_status().json()["name"])


class OpenAiHands:
    """The client of the package `openai`, which keeps the chat itself."""

    def __init__(self, client: openai.AsyncOpenAI, chat: list[Any]) -> None:
        self.client, self.chat = client, chat
        self.parts: list[Any] = []

    async def bring(self, name: str, content: str) -> None:
        kept = await self.client.files.create(file=(name, content.encode()), purpose="user_data")
        self.parts = [{"type": "file", "file": {"file_id": kept.id}}]

    def _asked(self, question: str) -> list[Any]:
        parts, self.parts = [{"type": "text", "text": question}, *self.parts], []
        return [*self.chat, {"role": "user", "content": parts}]

    async def ask(self, question: str) -> str:
        chat = self._asked(question)
        found = await self.client.chat.completions.create(model="taskweaver", messages=chat)
        answer = found.choices[0].message.content or ""
        self.chat = [*chat, {"role": "assistant", "content": answer}]
        return answer

    async def made(self) -> dict[str, bytes]:
        addresses = LINK.findall(self.chat[-1]["content"])
        return {
            unquote(urlsplit(one).path).rpartition("/")[2]: httpx2.get(one).content
            for one in addresses
        }

    async def stop(self, question: str, printed: str) -> None:
        chat, said = self._asked(question), ""
        stream = await self.client.chat.completions.create(
            model="taskweaver", messages=chat, stream=True
        )
        async for chunk in stream:
            said += getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
            if printed in said:
                break
        assert printed in said
        await stream.close()

    async def fork(self) -> OpenAiHands:
        return OpenAiHands(self.client, self.chat)  # a chat that goes on otherwise is a fork


class McpHands:
    """The client of the package `mcp`."""

    def __init__(self, client: Any, **place: str) -> None:
        self.client, self.place = client, place
        self.content: list[Any] = []

    async def bring(self, name: str, content: str) -> None:
        place = await value(self.client, "add_file", name=name, content=content, **self.place)
        self.place = {"session": place["session"], "branch": place["branch"]}

    async def ask(self, question: str) -> str:
        result = await self.client.call_tool("ask", {"question": question, **self.place})
        self.content = result.content
        return str(result.structured_content["answer"])

    async def made(self) -> dict[str, bytes]:
        links = [part for part in self.content if part.type == "resource_link"]
        found = {}
        for link in links:
            (read,) = (await self.client.read_resource(link.uri)).contents
            found[link.name] = (
                base64.b64decode(read.blob) if hasattr(read, "blob") else read.text.encode()
            )
        return found

    async def stop(self, question: str, printed: str) -> None:
        is_seen = asyncio.Event()

        async def hear(_progress: float, _total: float | None, message: str | None) -> None:
            if printed in (message or ""):
                is_seen.set()

        asked = {"question": question, **self.place}
        call = asyncio.create_task(self.client.call_tool("ask", asked, progress_callback=hear))
        await is_seen.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def fork(self) -> McpHands:
        session = self.place["session"]
        branch = (await value(self.client, "fork", session=session))["branch"]
        return McpHands(self.client, session=session, branch=branch)


class AcpHands:
    """The client of the package `agent-client-protocol`."""

    def __init__(self, agent: Any, editor: Any, folder: Path, session: str) -> None:
        self.agent, self.editor, self.folder, self.session = agent, editor, folder, session
        self.blocks: list[Any] = []
        self.begun = 0

    async def bring(self, name: str, content: str) -> None:
        import acp

        (self.folder / name).write_text(content)
        self.blocks = [acp.resource_link_block(name, (self.folder / name).as_uri())]

    async def _prompt(self, question: str) -> str:
        import acp

        self.begun = len(self.editor.updates)
        prompt, self.blocks = [acp.text_block(question), *self.blocks], []
        return str((await self.agent.prompt(session_id=self.session, prompt=prompt)).stop_reason)

    async def ask(self, question: str) -> str:
        before = len(self.editor.text(self.session))
        assert await self._prompt(question) == "end_turn"
        return str(self.editor.text(self.session)[before:])

    async def made(self) -> dict[str, bytes]:
        found = {}
        content = self.editor.of(self.session, "tool_call_update")[-1]["content"]
        for part in (one["content"] for one in content):
            path = Path(unquote(urlsplit(part.get("uri") or "").path))
            if part["type"] == "image":
                found[path.name] = base64.b64decode(part["data"])
            elif part["type"] == "resource_link":
                found[path.name] = path.read_bytes()
        return found

    async def stop(self, question: str, printed: str) -> None:
        running = asyncio.ensure_future(self._prompt(question))
        updates = self.editor.updates
        await self.editor.until(lambda: printed in str(updates[self.begun :]))
        await self.agent.cancel(session_id=self.session)
        assert await running == "cancelled"

    async def fork(self) -> AcpHands:
        made = await self.agent.fork_session(session_id=self.session, cwd=str(self.folder))
        return AcpHands(self.agent, self.editor, self.folder, made.session_id)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server of a project with all doors."""
    folder = tmp_path_factory.mktemp("served")
    with serving_agents(folder, None, OFFLINE, more=lambda own: [McpDoor(own)]) as running:
        yield running


@asynccontextmanager
async def by_agent_api(server: Served) -> AsyncIterator[Hands]:
    client = server.client()
    made = client.post(f"{API}/sessions", json={}).json()["session_id"]
    yield AgentHands(client, f"{API}/sessions/{made}")


@asynccontextmanager
async def by_openai(server: Served) -> AsyncIterator[Hands]:
    url, key = f"{server.url}/v1", server.token.text
    async with openai.AsyncOpenAI(api_key=key, base_url=url, timeout=PATIENCE_S) as client:
        yield OpenAiHands(client, [])


@asynccontextmanager
async def by_mcp_over_http(server: Served) -> AsyncIterator[Hands]:
    async with over_http(server.url, server.token.text) as client:
        yield McpHands(client)


@asynccontextmanager
async def by_mcp_over_stdio(folder: Path) -> AsyncIterator[Hands]:
    project = make_project(folder / "p", OFFLINE, has_table=False)
    program = (sys.executable, "-m", "taskweaver")
    async with mcp.Client(over_stdio(program, project)) as client:
        yield McpHands(client)


@asynccontextmanager
async def by_acp(folder: Path) -> AsyncIterator[Hands]:
    project = make_project(folder / "p", OFFLINE, has_table=False)
    async with editing(project, folder / "errors.log") as (agent, editor):
        made = await agent.new_session(cwd=str(folder), mcp_servers=[])
        yield AcpHands(agent, editor, folder, made.session_id)


LONG = pytest.mark.long


# httpx leaves the generator of a stream that is closed midway to the garbage collector.
@pytest.mark.filterwarnings("ignore:.*aiter_raw:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("door", "place"),
    [
        (by_openai, "server"),
        pytest.param(by_agent_api, "server", marks=LONG),
        pytest.param(by_mcp_over_http, "server", marks=LONG),
        pytest.param(by_mcp_over_stdio, "tmp_path", marks=LONG),
        pytest.param(by_acp, "tmp_path", marks=LONG),
    ],
)
def test_a_job_with_files_a_stop_and_a_fork(
    door: Callable[[Any], Any], place: str, request: pytest.FixtureRequest
) -> None:
    at = request.getfixturevalue(place)

    async def main() -> None:
        async with asyncio.timeout(4 * PATIENCE_S), door(at) as hands:
            await hands.bring("fruit.csv", FRUIT)
            assert "**4**" in await hands.ask(MEAN)
            await hands.ask(cell(MAKES))
            made = await hands.made()
            assert made["made.csv"] == b"a\n1\n"
            (picture,) = [content for name, content in made.items() if name.endswith(".png")]
            assert picture.startswith(b"\x89PNG")
            await hands.stop(cell(ENDLESS), PRINTED)
            assert "2" in await hands.ask(cell("v + 1"))
            fork = await hands.fork()
            assert "101" in await fork.ask(cell("v += 100\nv"))
            assert "**6**" in await fork.ask(MEAN.replace("mean", "maximum"))
            assert "101" not in await hands.ask(cell("v"))

    asyncio.run(main())
