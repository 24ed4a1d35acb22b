"""Quotas of users, and a server that stops while code runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import httpx2
import pytest
from agents import API as AGENT_API
from agents import SteeredModel, ask, new_session, serving_agents
from doors.conftest import LIMITS
from patience import PATIENCE_S
from served import Served, problem, served

from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.server import serving
from taskweaver.server.accounts import Quota

API = "/api/v1/sessions"


def test_uploads_without_a_length_leave_room_for_each_other(kernels: Served) -> None:
    client = kernels.client(kernels.accounts.add("sender", quota=Quota(disk_mb=16)).text)
    assert client.post(API, json={"session_id": "a"}).status_code == 201
    headers = {"Content-Type": "application/octet-stream"}
    together = Barrier(4)

    def content() -> Iterator[bytes]:
        for _ in range(3):  # a MiB of each before the next of any
            yield b"x" * (1 << 20)
            together.wait(PATIENCE_S)

    def send(name: str) -> int:
        return client.put(f"{API}/a/files/{name}", content=content(), headers=headers).status_code

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(send, "abcd")] == [200] * 4
    with suppress(httpx2.TransportError):  # the connection may be closed while it is sent
        too_much = iter([b"x" * (5 << 20)])
        refused = client.put(f"{API}/a/files/e", content=too_much, headers=headers)
        problem(refused, 429, "quota")
    problem(client.get(f"{API}/a/files/e"), 404, "not-found")


def test_a_user_at_each_quota(kernels: Served) -> None:
    small = Quota(kernels=1, disk_mb=1)
    client = kernels.client(kernels.accounts.add("small", quota=small).text)
    assert client.post(API, json={"session_id": "a"}).status_code == 201
    problem(client.post(API, json={"session_id": "b"}), 429, "quota")
    problem(client.post(f"{API}/a/fork", json={"session_id": "b"}), 429, "quota")
    code = {"exec_id": "fill", "code": "open('big', 'wb').write(b'x' * (3 << 20))"}
    filled = client.post(f"{API}/a/execute", json=code).json()
    assert "disk_mb of the user allows" in filled["error"], "a cell has what is left"
    full = problem(client.post(f"{API}/a/execute", json=code | {"exec_id": "b"}), 429, "quota")
    assert "of 1 MiB (disk_mb)" in full["detail"]
    headers = {"Content-Type": "application/octet-stream"}
    problem(client.put(f"{API}/a/files/x", content=b"x", headers=headers), 429, "quota")
    assert client.delete(f"{API}/a/files/big").status_code == 204
    assert client.put(f"{API}/a/files/x", content=b"x", headers=headers).status_code == 200
    large = client.put(f"{API}/a/files/y", content=b"x" * (1 << 20), headers=headers)
    problem(large, 429, "quota")

    assert client.delete(f"{API}/a/files/x").status_code == 204
    whole = b"x" * (3 << 18)
    sent = client.put(f"{API}/a/files/x", content=iter([whole]), headers=headers)
    assert sent.status_code == 200, "most of what is left"

    tight = kernels.client(kernels.accounts.add("tight", quota=Quota(memory_mb=1)).text)
    assert tight.post(API, json={"session_id": "a"}).status_code == 201
    first = tight.post(f"{API}/a/execute", json={"exec_id": "a", "code": "1"})
    assert first.status_code == 200, "it had not begun"
    problem(tight.post(f"{API}/a/execute", json={"exec_id": "b", "code": "1"}), 429, "quota")
    assert tight.delete(f"{API}/a").status_code == 200


def test_code_ends_and_health_is_told_at_the_limit_of_requests(kernels: Served) -> None:
    client = kernels.client(kernels.accounts.add("busy", quota=Quota(requests=1)).text)
    assert client.post(API, json={"session_id": "a"}).status_code == 201
    body = {"exec_id": "long", "code": "while True: pass", "stream": True}
    assert client.post(f"{API}/a/execute", json=body).status_code == 200
    with client.stream("GET", f"{API}/a/execute/long/stream") as stream:
        problem(client.get(API), 429, "quota")
        assert client.get("/api/v1/health").status_code == 200
        assert client.post(f"{API}/a/interrupt").status_code == 200
        stream.read()
    assert client.delete(f"{API}/a").status_code == 200


def test_sessions_at_the_limits_can_be_ended(tmp_path: Path) -> None:
    with serving_agents(tmp_path, SteeredModel()) as agents:
        client = agents.client(agents.accounts.add("one", quota=Quota(sessions=1)).text)
        stored = new_session(client)
        ask(client, stored, "say: hi")
        made = None  # the end of the message, and of its stream, may be a use during a release
        while made is None or made.status_code == 429:
            assert client.post(f"{stored}/release").status_code == 204
            made = client.post(f"{AGENT_API}/sessions", json={"title": ""})
        assert made.status_code == 201
        problem(client.get(stored), 429, "quota")
        assert client.post(f"{stored}/stop", json={"branch": "main"}).status_code == 200
        assert client.post(f"{stored}/release").status_code == 204
        assert client.delete(stored).status_code == 204

        client = agents.client(agents.accounts.add("poor", quota=Quota(kernels=0)).text)
        chat = {"messages": [{"role": "user", "content": "say: hi"}]}
        problem(client.post("/v1/chat/completions", json=chat), 429, "quota")
        assert client.get(f"{AGENT_API}/sessions").json()["total"] == 0, "no empty session stays"


@pytest.mark.parametrize("code", ["import time\ntime.sleep(0.5)\n'done'", "while True: pass"])
def test_running_code_ends_before_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(serving, "FINISH_S", 2.0)
    kernels = code_execution_service_factory(tmp_path / "env", limits=LIMITS)
    with ThreadPoolExecutor(2) as pool:
        try:
            with served([KernelApi(kernels, tmp_path / "users")], tmp_path) as running:
                client = running.client()
                client.post(API, json={"session_id": "a"})
                begin = {"exec_id": "begin", "code": "1"}
                client.post(f"{API}/a/execute", json=begin)
                body = {"exec_id": "run", "code": code, "stream": True}
                client.post(f"{API}/a/execute", json=body)
                waiting = pool.submit(
                    client.post, f"{API}/a/execute", json=begin | {"exec_id": "w"}
                )
                stream = pool.submit(client.get, f"{API}/a/execute/run/stream")
                facts = running.client()
                while facts.get(f"{API}/a").json()["execution_count"] < 3:
                    continue
                running.server.should_exit = True
                text = stream.result(PATIENCE_S).text
                problem(waiting.result(PATIENCE_S), 503, "stopping")
            assert text.endswith("event: done\ndata: {}\n\n")
            assert ('"output":"done"' in text) is ("done" in code)
        finally:
            kernels.clean_up()
