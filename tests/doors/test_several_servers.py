"""Two servers of one project that share a PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg
import pytest
from agents import (
    API,
    SteeredModel,
    ask,
    await_answer,
    events_of,
    kill,
    new_session,
    serving_agents,
    serving_client,
)
from click.testing import CliRunner
from command_line import CommandLine
from patience import PATIENCE_S
from postgres_server import postgres_server
from served import Served, problem
from shared_database import DatabaseLink, empty_database, locked_user, outage
from support import make_project
from test_agent_stops import await_output, messages, send

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.config.config_mgt import env_name
from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.accounts import Accounts, Quota, User
from taskweaver.server.admission import HeldShare
from taskweaver.server.agents import sessions as agent_sessions
from taskweaver.server.agents import user_sessions
from taskweaver.server.agents.index import IndexedMessage, SharedIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.databases import postgresql
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import Connection, PostgresDatabase
from taskweaver.server.operations import Door

_PATIENT = "options=-c%20lock_timeout%3D100s"


@dataclass
class Shared:
    """A project whose servers share a database, with a user ann and two servers.

    The servers wait long for the lock of a user; the second one has a link to the database. `boss`
    is the address of the superuser of the database's server.
    """

    folder: Path
    boss: str
    address: PostgresAddress
    accounts: Accounts
    token: str
    model: SteeredModel
    servers: list[Served]
    link: DatabaseLink

    def clients(self, token: str = "") -> list[httpx2.Client]:
        """Return a client of each server, of ann or with another token."""
        return [server.client(token or self.token) for server in self.servers]

    @property
    def variables(self) -> dict[str, str]:
        keys = {
            "server.database": self.address.url,
            "server.database_password": self.address.password,
            "execution.zygote": "false",
        }
        return {env_name(name): value for name, value in keys.items()}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder, model = tmp_path_factory.mktemp("shared"), SteeredModel()
    config = {"llm.api_type": "offline"}  # of a server that is a process
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(postgresql, "_SETTLED_S", 0.0)  # the database was just started
        patch.setattr(agent_sessions, "_LOOK_S", 0.05)
        patch.setattr(user_sessions, "_LEFT_S", PATIENCE_S)
        boss = stack.enter_context(postgres_server())
        address = stack.enter_context(empty_database(boss))
        patient = PostgresAddress(f"{address.url}?{_PATIENT}", address.password)
        link = DatabaseLink()

        def more(sessions: AgentSessions) -> Sequence[Door]:
            return [KernelApi(sessions.app.kernels, folder / "users")]

        servers = [
            stack.enter_context(serving_agents(folder, model, config, more=more, database=database))
            for database in (patient, stack.enter_context(link.to(patient)))
        ]
        accounts = servers[0].accounts
        ann = accounts.add("ann", quota=Quota(tokens=10**9))  # it is checked during an outage, too
        yield Shared(folder, boss, address, accounts, ann.text, model, servers, link)


@pytest.fixture
def bob(shared: Shared) -> Iterator[str]:
    """Give the token of one more user without quotas."""
    yield shared.accounts.add("bob").text
    shared.accounts.remove("bob")  # the code of several users needs walls


@pytest.fixture
def two(shared: Shared) -> list[httpx2.Client]:
    return shared.clients()


def test_a_session_is_held_by_one_server(two: list[httpx2.Client]) -> None:
    here, there = two
    session = new_session(here, "of the first")
    ask(here, session, "kept = 6 * 7\nkept", kind="code", message_id="m1")
    (listed,) = there.get(f"{API}/sessions").json()["sessions"]
    assert (listed["title"], listed["state"]) == ("of the first", "locked")
    answer = here.get(f"{session}/messages/m1").json()["answer"]
    assert messages(there, session)["m1"] == ("finished", answer)
    assert there.get(f"{session}/messages/m1").json()["state"] == "finished"
    for refused in (there.get(session), there.post(f"{session}/messages", json={"text": "x"})):
        found = problem(refused, 409, "session-in-use")
        assert "open at another server" in found["detail"]
    assert here.post(f"{session}/release").status_code == 204
    again = ask(there, session, "kept + 1", kind="code", message_id="m2")
    assert "43" in again["answer"], "its variables were stored"
    assert set(messages(here, session)) == {"m1", "m2"}
    problem(here.get(session), 409, "session-in-use")
    assert there.delete(session).status_code == 204
    assert here.get(f"{API}/sessions").json()["sessions"] == []


def test_a_session_that_nobody_uses_is_free(
    two: list[httpx2.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    session = new_session(here)

    def state(response: httpx2.Response) -> str:
        (listed,) = response.json()["sessions"]
        return str(listed["state"])

    assert state(there.get(f"{API}/sessions")) == "locked"
    monkeypatch.setattr(agent_sessions, "_IDLE_S", 0.0)
    await_answer(there, f"{API}/sessions", lambda response: state(response) == "stored")
    assert there.delete(session).status_code == 204


@pytest.mark.long
def test_a_killed_server_beside_another_that_goes_on(
    shared: Shared, two: list[httpx2.Client], command_line: CommandLine
) -> None:
    other = two[0]
    project, variables = shared.folder / "project", shared.variables
    started = serving_client(project, command_line.program, shared.token, **variables)
    with started as (process, client):
        session, own = new_session(client, "kept title"), new_session(other)
        send(other, own, "own", "print('on', flush=True)\nimport time; time.sleep(600)")
        await_output(other, own, "on", "own")
        ask(client, session, "41 + 1", kind="code", message_id="m1")
        send(client, session, "m2", "print('on', flush=True)\nimport time; time.sleep(600)")
        send(client, session, "m3", "print('never')")
        await_output(client, session, "on", "m2")
        assert messages(other, session)["m2"][0] == "running"
        with other.stream("GET", f"{API}/events") as response:
            events = events_of(response)
            assert next(events)[1] == "position"
            kill(process, client)
            open_ = {"m2", "m3"}  # nobody asks for them at the other server
            while open_:
                _, kind, data = next(events)
                assert kind == "message_stopped"
                open_.remove(data["message_id"])
    found = messages(other, session)
    assert found["m1"][0] == "finished"
    assert [found[name][0] for name in ("m2", "m3")] == ["stopped", "stopped"]
    assert messages(two[1], own)["own"][0] == "running"
    again = ask(other, session, "6 * 7", kind="code", message_id="m4")
    assert "42" in again["answer"]
    assert other.get(session).json()["title"] == "kept title"
    assert other.post(f"{own}/stop", json={}).json()["was_running"]


def test_answers_outlive_an_outage_of_the_database(
    shared: Shared, two: list[httpx2.Client]
) -> None:
    here, there = two
    session, model = new_session(here), shared.model
    body = {"text": "say: wait lost", "message_id": "lost"}
    assert here.post(f"{session}/messages", json=body).status_code == 202
    model.await_question("wait lost")
    with outage(shared.boss, shared.address):
        model.let_go("wait lost")
        for client in two:
            away = problem(client.get(f"{API}/sessions"), 503, "database-unavailable")
            assert "127.0.0.1" not in away["detail"]
    for client in two:
        await_answer(client, f"{API}/sessions", lambda response: response.status_code != 503)
    with here.stream("GET", f"{session}/messages/lost/events") as response:
        *_, (_, kind, data) = events_of(response)
    assert (kind, data["state"], data["answer"]) == ("message", "finished", "heard wait lost")
    assert messages(there, session)["lost"][0] == "finished"
    here.delete(session)


def test_a_message_whose_acknowledgement_was_lost_is_marked_unless_it_is_sent_again(
    shared: Shared, bob: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = PostgresDatabase._commit

    def commit_and_lose(self: PostgresDatabase, connection: Connection, user: str) -> None:
        commit(self, connection, user)
        if user == "bob":
            connection.close()
            raise psycopg.OperationalError

    client, other = shared.clients(bob)
    session = new_session(client)
    with monkeypatch.context() as patch:
        patch.setattr(PostgresDatabase, "_commit", commit_and_lose)
        for name in ("lost", "again"):
            body = {"text": "say: lost", "message_id": name}
            sent = client.post(f"{session}/messages", json=body)
            problem(sent, 503, "database-unavailable")
    assert ask(client, session, "say: lost", message_id="again")["state"] == "finished"
    assert messages(other, session)["lost"] == ("queued", "")
    monkeypatch.setattr(user_sessions, "_LEFT_S", 0.0)
    one = f"{session}/messages/lost"
    found = await_answer(other, one, lambda answer: answer.json()["state"] != "queued")
    assert (found.json()["state"], found.json()["round_id"]) == ("stopped", "")
    assert "Send a new one" in found.json()["answer"]
    assert messages(client, session)["again"][0] == "finished"


def test_a_change_that_waits_holds_up_its_own_user_alone(shared: Shared, bob: str) -> None:
    model = shared.model
    with ExitStack() as stack:
        eve = shared.accounts.add("eve").text
        stack.callback(shared.accounts.remove, "eve")
        (first, _), (second, _), (other, _) = (shared.clients(one) for one in (bob, bob, eve))
        session, others = new_session(first), new_session(other)
        threads = stack.enter_context(ThreadPoolExecutor(12))
        body = {"text": "say: wait on", "stream": True}
        response = stack.enter_context(first.stream("POST", f"{session}/messages", json=body))
        events = events_of(response)
        model.await_question("wait on")
        with locked_user(shared.address, "bob") as await_waiting:
            more = {"text": "say: more", "message_id": "more"}
            held_up = [
                threads.submit(second.post, f"{session}/messages", json=more),
                *(threads.submit(second.patch, session, json={"title": "t"}) for _ in range(10)),
            ]
            await_waiting()
            assert ask(other, others, "say: hello")["answer"] == "heard hello"
            model.let_go("wait on")
            assert "round_end" in (kind for _, kind, _ in events)
            assert second.get(f"{session}/rounds").status_code == 200
            assert await_waiting() <= 2, "the index, and spending; others have no connection"
            assert not any(one.done() for one in held_up)
        assert [one.result(PATIENCE_S).status_code for one in held_up] == [202, *[200] * 10]
        assert [data["state"] for _, kind, data in events if kind == "message"] == ["finished"]


def test_a_link_that_is_cut_holds_up_no_stream(shared: Shared, bob: str) -> None:
    model = shared.model
    with ExitStack() as stack:
        (_, first), (_, second) = shared.clients(bob), shared.clients(bob)
        session = new_session(first)
        threads = stack.enter_context(ThreadPoolExecutor(12))
        body = {"text": "say: wait cut", "stream": True}
        response = stack.enter_context(first.stream("POST", f"{session}/messages", json=body))
        events = events_of(response)
        model.await_question("wait cut")
        with shared.link.cut():
            held_up = [threads.submit(second.get, f"{API}/sessions") for _ in range(12)]
            assert shared.link.is_asked.wait(PATIENCE_S)
            anybody = shared.servers[1].client("")
            assert anybody.get("/api/v1/health").json()["status"] == "healthy"
            model.let_go("wait cut")
            assert "round_end" in (kind for _, kind, _ in events)
            assert not any(one.done() for one in held_up)
        assert {one.result(PATIENCE_S).status_code for one in held_up} == {200}
        assert [data["state"] for _, kind, data in events if kind == "message"] == ["finished"]
        second.delete(session)


def test_a_message_that_is_sent_twice_at_once_is_accepted_once(shared: Shared, bob: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        client = shared.clients(bob)[0]
        session, other = new_session(client), new_session(client)
        body = {"text": "say: once", "message_id": "once"}
        with locked_user(shared.address, "bob") as await_waiting:
            sent = [threads.submit(client.post, f"{session}/messages", json=body) for _ in range(7)]
            await_waiting()
            elsewhere = threads.submit(client.post, f"{other}/messages", json=body)
        statuses = [one.result(PATIENCE_S).status_code for one in sent]
        assert (statuses, elsewhere.result(PATIENCE_S).status_code) == ([202] * 7, 409)
        with client.stream("GET", f"{session}/messages/once/events") as response:
            *_, (_, _, ended) = events_of(response)
        assert ended["answer"] == "heard once"
        assert len(client.get(f"{session}/rounds").json()["rounds"]) == 1


def test_a_session_is_at_work_while_it_accepts_a_message(shared: Shared, bob: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        client = shared.clients(bob)[0]
        session = new_session(client)
        body = {"text": "say: last", "message_id": "last"}
        with locked_user(shared.address, "bob") as await_waiting:
            sent = threads.submit(client.post, f"{session}/messages", json=body)
            await_waiting()
            problem(client.post(f"{session}/release"), 409, "session-busy")
            deleted = threads.submit(client.delete, session)
        assert sent.result(PATIENCE_S).status_code == 202
        assert deleted.result(PATIENCE_S).status_code == 204
        problem(client.get(session), 404, "not-found")


def test_what_is_cancelled_while_the_database_waits_is_done(shared: Shared, tmp_path: Path) -> None:
    """Accepted messages, and those about to be: answered, or withdrawn where none else asks."""

    async def play(
        app: TaskWeaverApp, accounts: Accounts, indexes: SharedIndexes
    ) -> dict[str, str]:
        sessions = AgentSessions(app, accounts, tmp_path / "agents", indexes)
        conversation = await (await sessions.of(user)).create("")
        session_id = conversation.session.session_id

        async def cancel(name: str, *more: str) -> None:
            with locked_user(shared.address, user.name) as await_waiting:
                first, *others = (
                    IndexedMessage(one, session_id, "main", "ask", f"say: {one}")
                    for one in (name, *more)
                )
                started = [conversation.accept(user, first, HeldShare())]
                started += [conversation.submit(user, one, HeldShare()) for one in others]
                work = [asyncio.ensure_future(one) for one in started]
                await asyncio.to_thread(await_waiting)
                assert conversation.is_at_work
                for one in work:
                    one.cancel()
            await asyncio.wait(work)
            assert all(one.cancelled() for one in work)
            await conversation.index.calls.settle()

        await cancel("answered")
        await conversation.settle()
        await cancel("wait here", "withdrawn", "too")
        shared.model.let_go("wait here")
        await conversation.settle()
        found = await conversation.index.calls.in_thread(conversation.index.messages)
        await sessions.finish(PATIENCE_S)
        await sessions.close()
        return {one.id: one.state for one in found}

    own = PostgresAddress(f"{shared.address.url}?{_PATIENT}", shared.address.password)
    user, project = User("carl"), make_project(tmp_path / "project")
    with (
        Accounts(PostgresDatabase(own)) as accounts,
        closing(SharedIndexes(own, TelemetryLogger())) as indexes,
        TaskWeaverApp(project, model=shared.model, trust=True) as app,
    ):
        states = asyncio.run(play(app, accounts, indexes))
    ends = {"answered": "finished", "wait here": "finished"}
    assert states == ends | {"withdrawn": "withdrawn", "too": "withdrawn"}


def test_users_are_managed_in_the_database(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in shared.variables.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, exit_code: int = 0) -> str:
        command = ["-p", str(shared.folder / "project"), "serve", *arguments]
        done = CliRunner().invoke(commands, command)
        assert done.exit_code == exit_code, done.output
        return done.output

    token = run("users", "add", "dora").strip()
    assert getattr(shared.accounts.find(token), "name", "") == "dora"
    assert "dora" in run("users", "list")
    run("users", "remove", "dora")
    shared.clients()[0].post(f"{API}/sessions", json={"title": ""})
    assert "POST /agent/v1/sessions" in run("audit", "--json")
    monkeypatch.setenv("SERVER_DATABASE", "postgresql://127.0.0.1:1/none")
    assert "none at 127.0.0.1 cannot be reached" in run("users", "list", exit_code=2)
