"""Quotas of users, and a server that stops while code runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from doors.conftest import LIMITS
from patience import PATIENCE_S
from served import Served, problem, served

from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.server import serving
from taskweaver.server.accounts import Quota

API = "/api/v1/sessions"


def test_a_user_at_each_quota(server: Served) -> None:
    small = Quota(kernels=1, disk_mb=1)
    client = server.client(server.accounts.add("small", quota=small).text)
    assert client.post(API, json={"session_id": "a"}).status_code == 201
    problem(client.post(API, json={"session_id": "b"}), 403, "quota")
    problem(client.post(f"{API}/a/fork", json={"session_id": "b"}), 403, "quota")
    code = {"exec_id": "fill", "code": "open('big', 'wb').write(b'x' * (2 << 20))"}
    assert client.post(f"{API}/a/execute", json=code).json()["is_success"]
    full = problem(client.post(f"{API}/a/execute", json=code | {"exec_id": "b"}), 403, "quota")
    assert "of 1 MiB" in full["detail"]
    headers = {"Content-Type": "application/octet-stream"}
    problem(client.put(f"{API}/a/files/x", content=b"x", headers=headers), 403, "quota")
    assert client.delete(f"{API}/a/files/big").status_code == 204
    assert client.put(f"{API}/a/files/x", content=b"x", headers=headers).status_code == 200
    large = client.put(f"{API}/a/files/y", content=b"x" * (1 << 20), headers=headers)
    problem(large, 413, "too-large")

    tight = server.client(server.accounts.add("tight", quota=Quota(memory_mb=1)).text)
    assert tight.post(API, json={"session_id": "a"}).status_code == 201
    first = tight.post(f"{API}/a/execute", json={"exec_id": "a", "code": "1"})
    assert first.status_code == 200, "it had not begun"
    problem(tight.post(f"{API}/a/execute", json={"exec_id": "b", "code": "1"}), 403, "quota")
    assert tight.delete(f"{API}/a").status_code == 200


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
