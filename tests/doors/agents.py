"""A server with the agent API, and a model that the tests steer."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
from patience import PATIENCE_S
from served import Served, listening, served, serving
from support import make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.doors.chat_completions.door import ChatCompletions
from taskweaver.llm.types import ChatMessage
from taskweaver.server.accounts import Accounts, server_folder
from taskweaver.server.agents.index import AgentIndexes, FileIndexes, SharedIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.operations import Door

API = "/agent/v1"


class SteeredModel:
    """A model that answers ``say: X`` with X; questions with ``wait NAME`` wait until let go."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked: list[str] = []
        self._free: set[str] = set()

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer."""
        question = str(messages[-1]["content"]).rpartition("say: ")[2].split("\n")[0].strip(' "')
        if question.startswith("wait"):
            self._wait(question)
        return planner_reply("User", f"heard {question}")

    def _wait(self, question: str) -> None:
        with self._changed:
            self._asked.append(question)
            self._changed.notify_all()
            self._changed.wait_for(lambda: question in self._free, PATIENCE_S)

    def await_question(self, question: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: question in self._asked, PATIENCE_S), question

    def let_go(self, question: str) -> None:
        with self._changed:
            self._free.add(question)
            self._changed.notify_all()


@contextmanager
def serving_agents(
    folder: Path,
    model: Callable[[Sequence[ChatMessage]], str] | None,
    config: Mapping[str, Any] | None = None,
    port: int = 0,
    trust: bool | None = None,
    more: Callable[[AgentSessions], Sequence[Door]] = lambda _sessions: (),
    database: PostgresAddress | None = None,
    *,
    is_behind_proxy: bool = False,
    has_table: bool = False,
) -> Iterator[Served]:
    """Serve the agent API of a project in a folder, made if there is none, and more doors.

    With a database other servers of the project share the users and their sessions.
    """
    project = folder / "project"
    if not project.exists():
        make_project(project, {"execution.zygote": True, **(config or {})}, has_table=has_table)

    def doors(accounts: Accounts) -> list[Door]:
        place = folder / "agents"
        indexes: AgentIndexes = FileIndexes()
        if database is not None:
            place = server_folder(app.workspace) / "agents"
            indexes = SharedIndexes(database, app.log)
        sessions = AgentSessions(app, accounts, place, indexes)
        return [AgentApi(sessions), ChatCompletions(sessions), *more(sessions)]

    with (
        TaskWeaverApp(project, model=model, trust=trust) as app,
        served(
            doors, folder, port=port, database=database, is_behind_proxy=is_behind_proxy
        ) as running,
    ):
        yield running


@contextmanager
def serving_client(
    project: Path, program: Sequence[str], token: str = "", **environment: str
) -> Iterator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """Give the process of a program that serves, and a client of it."""
    with serving(project, program=program, **environment) as (process, line):
        match = re.search(r"(http://127\.0\.0\.1:\d+)(?:/#token=(\S+))?", line)
        assert match, line
        headers = {"Authorization": f"Bearer {token or match[2]}"}
        with httpx2.Client(base_url=match[1], headers=headers, timeout=PATIENCE_S) as client:
            yield process, client


def kill(process: subprocess.Popen[str], client: httpx2.Client) -> None:
    """Kill the server of a client; nothing that it has started is left."""
    server = listening(str(client.base_url))
    children = server.children(recursive=True)
    server.kill()
    process.wait(PATIENCE_S)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert (alive, bool(children)) == ([], True)


def events_of(response: httpx2.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the id, kind and data of server-sent events as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line:
            if "data" in fields:
                yield fields["id"], fields["event"], json.loads(fields["data"])
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def await_answer(
    client: httpx2.Client, address: str, is_met: Callable[[httpx2.Response], bool]
) -> httpx2.Response:
    """Ask until the answer is as wanted, less often than a token may."""
    pause = threading.Event()
    while not is_met(response := client.get(address)):
        pause.wait(0.02)
    return response


def new_session(client: httpx2.Client, title: str = "") -> str:
    made = client.post(f"{API}/sessions", json={"title": title})
    assert made.status_code == 201, made.text
    return f"{API}/sessions/{made.json()['session_id']}"


def ask(client: httpx2.Client, session: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"text": text, "stream": True, **more}
    with client.stream("POST", f"{session}/messages", json=body) as response:
        assert response.status_code == 200, response.read()
        *_, (_, kind, data) = events_of(response)
    assert kind == "message"
    return data


def asking(server: Served, token: str = "") -> Any:
    """Return the client of the package `openai`, of the server's own user or with a token."""
    import openai

    url, key = f"{server.url}/v1", token or server.token.text
    return openai.OpenAI(api_key=key, base_url=url, max_retries=0, timeout=PATIENCE_S)
