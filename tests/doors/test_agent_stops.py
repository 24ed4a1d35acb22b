"""The end of a server with open messages: by a signal, by a kill; and confirmations."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from agents import (
    SteeredModel,
    ask,
    await_answer,
    events_of,
    kill,
    new_session,
    serving_agents,
    serving_client,
)
from command_line import CommandLine
from jupyter_clients import joined
from live_folders import paths_below
from patience import PATIENCE_S
from served import problem
from support import code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.server.accounts import Accounts, User
from taskweaver.server.admission import Admission
from taskweaver.server.agents import sessions as agent_sessions
from taskweaver.server.agents.index import AgentIndex, AgentIndexes, FileIndexes, ListedSession
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused

MARK = "ends-with-the-server"
OFFLINE = {"llm.api_type": "offline"}


def send(client: httpx2.Client, session: str, message_id: str, code: str) -> None:
    body = {"text": code, "kind": "code", "message_id": message_id}
    assert client.post(f"{session}/messages", json=body).status_code == 202


def await_output(client: httpx2.Client, session: str, text: str, message_id: str) -> int:
    """Wait until a running message printed a text; return the number of that event."""
    with client.stream("GET", f"{session}/messages/{message_id}/events") as response:
        for number, kind, data in events_of(response):
            if kind == "post_execution_output" and text in data["msg"]:
                return int(number)
    raise AssertionError("the message ended before")


def messages(client: httpx2.Client, session: str) -> dict[str, tuple[str, str]]:
    found = client.get(f"{session}/messages").json()["messages"]
    return {item["message_id"]: (item["state"], item["answer"]) for item in found}


def test_a_kill_loses_nothing_that_was_acknowledged(
    tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", OFFLINE, has_table=False)
    with serving_client(project, command_line.program) as (process, client):
        session = new_session(client, "kept title")
        ask(client, session, "kept = 41 + 1\nkept", kind="code", message_id="m1")
        send(client, session, "m2", f"print('{MARK}', flush=True)\nimport time; time.sleep(600)")
        send(client, session, "m3", "print('never')")
        seen = await_output(client, session, MARK, "m2")
        kill(process, client)
    with serving_client(project, command_line.program) as (_, client):
        found = messages(client, session)
        assert found["m1"][0] == "finished"
        assert "42" in found["m1"][1]
        for name in ("m2", "m3"):
            assert found[name] == ("stopped", "The server ended before this message was answered.")
        rounds = client.get(f"{session}/rounds").json()["rounds"]
        assert [item["state"] for item in rounds] == ["finished", "failed"]
        assert client.get(session).json()["title"] == "kept title"
        headers = {"Last-Event-ID": str(seen)}
        with client.stream("GET", f"{session}/events", headers=headers) as response:
            events = events_of(response)
            assert [next(events)[1] for _ in range(2)] == ["round_error", "round_end"]
        again = ask(client, session, "6 * 7", kind="code", message_id="m4")
        assert "42" in again["answer"]


def test_a_signal_lets_the_running_message_end_and_marks_those_that_wait(
    tmp_path: Path, command_line: CommandLine
) -> None:
    project = make_project(tmp_path / "p", OFFLINE, has_table=False)
    with serving_client(project, command_line.program) as (process, client):
        session = new_session(client)
        code = f"print('{MARK}', flush=True)\nimport time; time.sleep(2)\n'whole'"
        send(client, session, "m1", code)
        send(client, session, "m2", "print('never')")
        await_output(client, session, MARK, "m1")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in errors) == (0, False), errors
    with serving_client(project, command_line.program) as (_, client):
        found = messages(client, session)
    assert found["m1"][0] == "finished"
    assert "whole" in found["m1"][1]
    assert found["m2"] == ("stopped", "The server stopped before this message was answered.")


def has_no_kernel(response: httpx2.Response) -> bool:
    return bool(response.json()["branches"][0]["kernel"] == "not started")


def test_kernels_of_sessions_that_nobody_uses_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_sessions, "_LOOK_S", 0.05)
    monkeypatch.setattr(agent_sessions, "_IDLE_S", 0.0)
    model, pause = SteeredModel(), threading.Event()

    def await_no_kernel(name: str) -> None:
        while paths_below(tmp_path / "project", f"kernels/{name}"):  # no request is sent
            pause.wait(0.02)

    with serving_agents(tmp_path, model) as server:
        client = server.client()
        session = new_session(client)
        ask(client, session, "say: hi")
        assert has_no_kernel(client.get(session)), "without a cell"
        assert not paths_below(tmp_path / "project", "kernels/*.json")
        ask(client, session, "kept = 6 * 7", kind="code")
        await_no_kernel("*.json")
        await_answer(client, session, has_no_kernel)
        assert "42" in ask(client, session, "kept", kind="code")["answer"]
        body = {"text": "say: wait for idle kernels", "message_id": "waits"}
        assert client.post(f"{session}/messages", json=body).status_code == 202
        model.await_question("wait for idle kernels")
        past = client.get(f"{session}/branches/main/rounds/2/variables/kept/rows")
        problem(past, 422, "invalid-query")  # no table; its kernel was started all the same
        await_no_kernel("*.past.json")
        assert messages(client, session)["waits"][0] == "running"  # the session is in use
        model.let_go("wait for idle kernels")


def test_a_kernel_whose_variables_cannot_be_stored_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_sessions, "_LOOK_S", 0.05)
    with serving_agents(tmp_path, SteeredModel()) as server:
        client = server.client()
        session, busy, other = (new_session(client) for _ in range(3))
        ask(client, session, "numbers = (n for n in [41, 42])\nnext(numbers)", kind="code")
        ask(client, busy, "import subprocess\nsubprocess.Popen(['sleep', '600']).pid", kind="code")
        ask(client, other, "1", kind="code")
        monkeypatch.setattr(agent_sessions, "_IDLE_S", 0.0)
        await_answer(client, other, has_no_kernel)
        for stays in (session, busy):
            assert client.get(stays).json()["branches"][0]["kernel"] == "ready"
        body = {"text": "next(numbers)", "kind": "code", "message_id": "m"}
        client.post(f"{session}/messages", json=body)
        with client.stream("GET", f"{session}/messages/m/events") as response:
            events = list(events_of(response))
        warned = [data["msg"] for _, kind, data in events if kind == "round_warning"]
        assert any("ran on unused" in text and "numbers (generator)" in text for text in warned)
        assert "42" in events[-1][2]["answer"]
        assert client.post(f"{session}/release").status_code == 204, "it ends when it is told to"
        await_answer(client, session, has_no_kernel)


def test_a_kernel_that_runs_a_cell_of_a_jupyter_client_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_sessions, "_LOOK_S", 0.05)
    with serving_agents(tmp_path, SteeredModel()) as server:
        client = server.client()
        attached, idle = new_session(client), new_session(client)
        ask(client, attached, "kept = 6 * 7", kind="code")
        (file,) = paths_below(tmp_path / "project", "kernels/*.json")
        ask(client, idle, "1", kind="code")

        with joined(file) as jupyter:
            jupyter.execute("input()", allow_stdin=True)  # it runs until it is answered
            assert jupyter.get_stdin_msg(timeout=PATIENCE_S)["msg_type"] == "input_request"
            monkeypatch.setattr(agent_sessions, "_IDLE_S", 0.0)
            await_answer(client, idle, has_no_kernel)
            assert client.get(attached).json()["branches"][0]["kernel"] == "ready"
            jupyter.input("x")
            await_answer(client, attached, has_no_kernel)
        assert "42" in ask(client, attached, "kept", kind="code")["answer"]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """Give a client of a server whose model writes a cell, and that asks before it runs."""
    config = {"session.roles": ["code_interpreter"], "code_interpreter.require_confirmation": True}
    cell = code_reply("print('allowed ' + 'to run')")
    folder = tmp_path_factory.mktemp("asking")
    with serving_agents(folder, lambda _messages: cell, config) as server:
        yield server.client()


@pytest.mark.parametrize("answer", ["yes", "no", "stop", "edit"])
def test_code_waits_for_the_answer_of_a_client(asking: httpx2.Client, answer: str) -> None:
    client = asking
    session = new_session(client)
    client.post(f"{session}/messages", json={"text": "run it", "message_id": answer})
    with client.stream("GET", f"{session}/messages/{answer}/events") as response:
        events = events_of(response)
        asked = next(data for _, kind, data in events if kind == "post_confirmation_request")
        waiting = client.get(f"{session}/confirmations").json()["confirmations"]
        state = client.get(session).json()["branches"][0]["state"]
        one = f"{session}/confirmations/{asked['extra']['id']}"
        if answer == "stop":
            client.post(f"{session}/stop", json={})
        elif answer == "edit":
            code = "print('changed ' + 'by hand')"
            problem(client.post(one, json={"answer": "no", "code": code}), 422, "invalid-body")
            edited = client.post(one, json={"answer": "yes", "code": code})
            assert edited.status_code == 204
        else:
            assert client.post(one, json={"answer": answer}).status_code == 204
        *_, (_, _, ended) = events
    assert (state, len(waiting)) == ("asks", 1)
    assert (waiting[0]["branch"], "allowed" in waiting[0]["content"]) == ("main", True)
    assert waiting[0]["confirmation_id"] == asked["extra"]["id"]
    assert waiting[0]["is_editable"]
    assert ("allowed to run" in ended["answer"]) == (answer == "yes"), ended
    assert ("changed by hand" in ended["answer"]) == (answer == "edit"), ended
    assert client.get(f"{session}/confirmations").json()["confirmations"] == []
    problem(client.post(one, json={"answer": "no"}), 404, "not-found")


def play(
    folder: Path,
    story: Callable[[AgentSessions], Awaitable[Any]],
    indexes: AgentIndexes | None = None,
) -> Any:
    """Return what a story gives that has the sessions of a server's users."""

    async def whole() -> Any:
        sessions = AgentSessions(app, accounts, folder / "agents", indexes or FileIndexes())
        try:
            return await story(sessions)
        finally:
            await sessions.finish(1)
            await sessions.close()

    project = make_project(folder / "p", OFFLINE)
    with TaskWeaverApp(project) as app, Accounts.at(folder / "accounts.sqlite") as accounts:
        return asyncio.run(whole())


def test_who_asks_for_a_session_while_it_is_deleted_does_not_bring_it_back(tmp_path: Path) -> None:
    async def delete_and_ask(sessions: AgentSessions) -> list[ListedSession]:
        own = await sessions.of(User("ann"))
        made = await own.create("short")
        deleting = asyncio.create_task(own.remove(made.session.session_id))
        while made in own.open_conversations:
            await asyncio.sleep(0)
        with pytest.raises(RequestRefused, match="not found"):
            await own.conversation(made.session.session_id)
        await deleting
        return list(await own.listed())

    assert play(tmp_path, delete_and_ask) == []


def test_a_fork_that_waits_for_room_opens_a_session_that_is_released_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fork_and_release(sessions: AgentSessions) -> str:
        own = await sessions.of(User("ann"))
        made = await own.create("short")
        await asyncio.to_thread(made.session.send_message, "describe tiny.csv")
        reserve = Admission.reserve

        async def after_release(*of: Any, **named: Any) -> Any:
            await own.release(made.session.session_id)
            return await reserve(*of, **named)

        monkeypatch.setattr(Admission, "reserve", after_release)
        return await own.fork(made, "main", "second")

    assert play(tmp_path, fork_and_release) == "second"


class SlowIndexes(FileIndexes):
    """Indexes, of which that of ann opens only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_open = threading.Event(), threading.Event()

    def of(self, user: str, folder: Path) -> AgentIndex:
        if user == "ann":
            self.is_asked.set()
            assert self.may_open.wait(PATIENCE_S)
        return super().of(user, folder)


@pytest.mark.parametrize("stops", [False, True])
def test_an_index_that_opens_slowly_holds_up_its_user_alone(tmp_path: Path, stops: bool) -> None:
    indexes = SlowIndexes()

    async def ask_both(sessions: AgentSessions) -> None:
        first, second = (asyncio.ensure_future(sessions.of(User("ann"))) for _ in range(2))
        assert await asyncio.to_thread(indexes.is_asked.wait, PATIENCE_S)
        first.cancel()
        await sessions.of(User("bob"))
        if stops:
            await sessions.finish(0)
            with pytest.raises(RequestRefused, match="is stopping"):
                await sessions.of(User("bob"))
        indexes.may_open.set()
        if stops:
            with pytest.raises(RequestRefused, match="is stopping"):
                await second
        else:
            assert await second is await sessions.of(User("ann"))

    try:
        play(tmp_path, ask_both, indexes)
    finally:
        indexes.may_open.set()
    opened = [Path(item.path) for item in psutil.Process().open_files()]
    assert not [path for path in opened if path.is_relative_to(tmp_path / "agents")]
