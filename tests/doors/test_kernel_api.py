"""The kernel API, request by request as the original's client makes them."""

from __future__ import annotations

import base64
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from patience import PATIENCE_S
from served import Served, problem

API = "/api/v1"


class OriginalClient:
    """The requests of the original's client, with its headers and its reading of answers."""

    def __init__(self, server: Served, session_id: str) -> None:
        self.id = session_id
        self.url = server.url
        headers = {"Content-Type": "application/json", "X-API-Key": server.token.text}
        self.http = server.client("", **headers)
        self.cwd = ""

    def start(self) -> int:
        """Make the session; one that exists is used."""
        body = {"session_id": self.id, "cwd": "/home/somebody/project"}
        response = self.http.post(f"{API}/sessions", json=body)
        if response.status_code == 201:
            self.cwd = response.json()["cwd"]
        return response.status_code

    def execute(self, exec_id: str, code: str) -> dict[str, Any]:
        body = {"exec_id": exec_id, "code": code, "stream": False}
        response = self.http.post(f"{API}/sessions/{self.id}/execute", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def stream(
        self, exec_id: str, code: str, begun: threading.Event | None = None
    ) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        """Run code; return its output in pieces, and its result; set an event with the first."""
        body = {"exec_id": exec_id, "code": code, "stream": True}
        started = self.http.post(f"{API}/sessions/{self.id}/execute", json=body).json()
        path = started["stream_url"].replace(self.url, "")
        pieces, result, kind = [], {}, ""
        with self.http.stream("GET", path) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            for line in response.iter_lines():
                if line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:"):
                    data = json.loads(line[5:])
                    if kind == "output":
                        pieces.append((data["type"], data["text"]))
                        (begun or threading.Event()).set()
                    elif kind == "result":
                        result = data
                    elif kind == "done":
                        break
        return pieces, result


@pytest.fixture(scope="module")
def original(kernels: Served) -> OriginalClient:
    client = OriginalClient(kernels, "20250101-000000-abcd")
    assert client.start() == 201
    return client


FIELDS = {"execution_id", "is_success", "error", "output", "stdout", "stderr"}
FIELDS |= {"log", "artifact", "variables"}


def test_a_session_that_exists_is_a_conflict_and_its_facts_can_be_read(
    original: OriginalClient,
) -> None:
    assert original.start() == 409
    facts = original.http.get(f"{API}/sessions/{original.id}").json()
    assert set(facts) >= {"created_at", "last_activity", "loaded_plugins", "execution_count"}
    assert (facts["session_id"], facts["status"]) == (original.id, "running")
    assert facts["cwd"] == original.cwd
    assert "/home/somebody" not in original.cwd


def test_code_runs_and_keeps_its_variables(original: OriginalClient) -> None:
    first = original.execute("keep-1", "x = 20\nprint('hello')\nx + 1")
    assert set(first) == FIELDS
    assert (first["is_success"], first["output"], first["error"]) == (True, 21, None)
    assert first["stdout"] == ["hello\n"]
    assert ["x", "20"] in first["variables"]
    assert original.execute("keep-2", "x * 2")["output"] == 40
    failed = original.execute("fails", "1 / 0")
    assert (failed["is_success"], "ZeroDivisionError" in failed["error"]) == (False, True)


def test_output_streams_and_values_that_are_no_json_end_no_stream(original: OriginalClient) -> None:
    pieces, result = original.stream(
        "streams", "import sys\nprint('a')\nprint('b', file=sys.stderr)\n{1, b'x', float('nan')}"
    )
    assert "".join(text for kind, text in pieces if kind == "stdout") == "a\n"
    assert "".join(text for kind, text in pieces if kind == "stderr") == "b\n"
    assert set(result) == FIELDS
    assert result["is_success"]


def test_plugins_and_session_variables(original: OriginalClient) -> None:
    code = (
        "from taskweaver.plugin import Plugin, register_plugin\n"
        "@register_plugin\nclass Greet(Plugin):\n"
        "    def __call__(self):\n"
        "        return self.config['word'] + ' ' + self.ctx.get_session_var('who', 'x')\n"
    )
    path = f"{API}/sessions/{original.id}"
    plugin = {"name": "greet", "code": code, "config": {"word": "hello"}}
    loaded = original.http.post(f"{path}/plugins", json=plugin).json()
    assert loaded == {"name": "greet", "status": "loaded"}
    values = {"variables": {"who": "you"}}
    answer = original.http.post(f"{path}/variables", json=values).json()
    assert answer == {"status": "updated", **values}
    assert original.execute("plugin", "greet()")["output"] == "hello you"
    assert original.http.get(path).json()["loaded_plugins"] == ["greet"]
    broken = original.http.post(f"{path}/plugins", json={"name": "bad", "code": "1 / 0"})
    assert "ZeroDivisionError" in problem(broken, 400, "plugin-load-failed")["detail"]


def test_files_go_up_and_artifacts_down(original: OriginalClient) -> None:
    content = bytes(range(256))
    body = {"filename": "a.bin", "content": base64.b64encode(content).decode()}
    path = f"{API}/sessions/{original.id}"
    answer = original.http.post(f"{path}/files", json=body | {"encoding": "base64"}).json()
    assert answer == {"filename": "a.bin", "status": "uploaded", "path": f"{original.cwd}/a.bin"}
    assert original.execute("size", "len(open('a.bin', 'rb').read())")["output"] == 256
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    (artifact,) = original.execute("plot", plot)["artifact"]
    image = original.http.get(artifact["download_url"].removeprefix(original.url))
    assert image.content.startswith(b"\x89PNG")
    assert image.headers["content-disposition"].startswith("attachment")
    assert original.http.get(f"{path}/artifacts/a.bin").content == content
    problem(original.http.get(f"{path}/artifacts/none"), 404, "not-found")


def test_a_stopped_session_is_gone(kernels: Served) -> None:
    client = OriginalClient(kernels, "short")
    client.start()
    client.execute("writes", "open('left', 'w').write('x')")
    stopped = client.http.delete(f"{API}/sessions/short")
    assert stopped.json() == {"session_id": "short", "status": "stopped"}
    problem(client.http.delete(f"{API}/sessions/short"), 404, "not-found")
    problem(client.http.get(f"{API}/sessions/short"), 404, "not-found")
    assert client.start() == 201
    assert client.http.get(f"{API}/sessions/short/files").json() == {"files": []}


def test_a_stream_has_many_readers_and_is_resumed(original: OriginalClient) -> None:
    code = "for i in range(5):\n    print(i, flush=True)"
    original.stream("many", code)
    path = f"{API}/sessions/{original.id}/execute/many/stream"
    whole = original.http.get(path).text
    events = whole.split("\n\n")[:-1]
    ids = [event.split("\n")[0] for event in events]
    assert ids == [f"id: {number}" for number in range(1, len(events) + 1)]
    rest = original.http.get(path, headers={"Last-Event-ID": "1"}).text
    assert rest == whole.split("\n\n", 1)[1]
    far = original.http.get(path, headers={"Last-Event-ID": "9999"})
    problem(far, 409, "conflict")
    problem(original.http.get(path, headers={"Last-Event-ID": "-1"}), 400, "event-id")
    problem(original.http.get(path.replace("many", "none")), 404, "not-found")


def test_the_same_execution_is_not_run_twice(original: OriginalClient) -> None:
    original.execute("zero", "count = 0")
    first = original.execute("once", "count += 1\ncount")
    assert original.execute("once", "count += 1\ncount") == first
    assert original.execute("check", "count")["output"] == 1
    body = {"exec_id": "once", "code": "other"}
    problem(original.http.post(f"{API}/sessions/{original.id}/execute", json=body), 409, "conflict")


def test_a_reader_that_leaves_ends_no_execution(original: OriginalClient) -> None:
    body = {"exec_id": "left", "code": "import time\nprint('on', flush=True)\ntime.sleep(1)\n5"}
    path = f"{API}/sessions/{original.id}/execute"
    original.http.post(path, json=body | {"stream": True})
    with original.http.stream("GET", f"{path}/left/stream") as response:
        next(response.iter_lines())
    assert original.http.post(path, json=body).json()["output"] == 5


def test_sessions_are_listed_interrupted_restarted_and_forked(kernels: Served) -> None:
    client = OriginalClient(kernels, "parent")
    client.start()
    path = f"{API}/sessions/parent"
    client.execute("one", "data = [1, 2]\nopen('note.txt', 'w').write('parent')\nprint(1)")

    made = client.http.post(f"{path}/fork", json={"session_id": "child"})
    assert made.status_code == 201, made.text
    child = OriginalClient(kernels, "child")
    forked = child.execute("fork", "data.append(3)\n[data, open('note.txt').read()]")
    assert forked["output"] == [[1, 2, 3], "parent"]
    assert client.execute("after", "data")["output"] == [1, 2]
    child.execute("file", "open('note.txt', 'w').write('child')")
    assert client.execute("own", "open('note.txt').read()")["output"] == "parent"
    listed = client.http.get(f"{API}/sessions").json()["sessions"]
    assert {"parent", "child"} <= {item["session_id"] for item in listed}
    problem(client.http.post(f"{path}/fork", json={"session_id": "child"}), 409, "conflict")

    with ThreadPoolExecutor(1) as pool:
        begun = threading.Event()
        code = "import time\nprint('on', flush=True)\nwhile True:\n    time.sleep(0.01)"
        endless = pool.submit(client.stream, "endless", code, begun)
        assert begun.wait(PATIENCE_S)
        assert client.http.post(f"{path}/interrupt").json()["status"] == "interrupted"
        assert "KeyboardInterrupt" in endless.result(PATIENCE_S)[1]["error"]
    assert client.execute("still", "data")["output"] == [1, 2]

    assert client.http.post(f"{path}/restart").json()["status"] == "restarted"
    assert "NameError" in client.execute("fresh", "data")["error"]
    assert not client.execute("dies", "import os\nos._exit(3)")["is_success"]
    assert client.execute("again", "1 + 1")["output"] == 2
    assert client.http.delete(path).status_code == 200
    assert child.execute("alive", "data")["output"] == [1, 2, 3]
    assert client.http.delete(f"{API}/sessions/child").status_code == 200


def test_the_client_is_told_of_a_wrong_body(original: OriginalClient) -> None:
    url = f"{API}/sessions/{original.id}/execute"
    wrong = problem(original.http.post(url, json={"code": 1}), 422, "invalid-body")
    assert {item["pointer"] for item in wrong["errors"]} == {"/exec_id", "/code"}
    problem(original.http.post(url, content=b"[" * 100_000), 400, "no-json")
    for bad in ("", "a/b", "..", "x" * 129, "a b", "é"):
        problem(original.http.post(f"{API}/sessions", json={"session_id": bad}), 422, "invalid-id")
