"""Kernels of a server as an application uses them: `execution.server`."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from doors.conftest import LIMITS
from patience import PATIENCE_S
from served import Served, served
from shared_database import relay
from sizes import examples
from support import make_project

from taskweaver import TaskWeaverApp
from taskweaver.ces.common import Client, PluginCode, forkable, inspectable
from taskweaver.ces.errors import ForkRefused, KernelError, KernelStartFailed, PluginLoadFailed
from taskweaver.ces.kernel_server import KernelServer, ServerUnreachable
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.remote_kernels import RemoteKernel, RemoteManager
from taskweaver.doors.kernel_api.door import KernelApi


@pytest.fixture
def manager(kernels: Served, tmp_path: Path) -> Iterator[RemoteManager]:
    made = RemoteManager(kernels.url, kernels.token.text, tmp_path)
    yield made
    made.clean_up()


@pytest.fixture
def client(manager: RemoteManager) -> Client:
    return manager.get_session_client("remote")


def run(client: Client, code: str) -> Any:
    result = client.execute_code("x", code)
    assert result.is_success, result.error
    return result.output


def test_a_cell_runs_there_and_its_output_streams(client: Client) -> None:
    assert client.state == "not started"
    pieces: list[tuple[str, str]] = []
    result = client.execute_code("post-1", "x = 5\nprint('hi')\nx + 1", lambda *p: pieces.append(p))
    assert (result.execution_id, result.output, result.status) == ("post-1", 6, "ok")
    assert pieces == [("stdout", "hi\n")]
    assert result.variables == [("x", "5")]
    assert result.duration_s > 0
    assert client.has_state
    with pytest.raises(ForkRefused, match="another machine"):
        forkable(client)
    with pytest.raises(KernelError, match="shows no variables"):
        inspectable(client)
    failed = client.execute_code("post-1", "1 / 0")
    assert (failed.is_success, failed.status) == (False, "error")
    assert "ZeroDivisionError" in failed.reason


def test_files_go_there_and_come_back(manager: RemoteManager, tmp_path: Path) -> None:
    cwd = tmp_path / "work"
    client = manager.get_session_client("files-of-a-session", cwd=cwd)
    (cwd / "sub").mkdir()
    (cwd / "in.txt").write_text("hello")
    (cwd / "sub" / "deep.txt").write_text("deep")
    (cwd / "link").symlink_to("/etc/hostname")
    assert run(client, "open('in.txt').read() + open('sub/deep.txt').read()") == "hellodeep"
    run(client, "import os\nos.mkdir('new')\nopen('new/out.txt', 'w').write('made')")
    assert (cwd / "new" / "out.txt").read_text() == "made"
    (cwd / "new" / "out.txt").write_text("changed here")
    assert run(client, "open('new/out.txt').read()") == "changed here"
    plot = "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()"
    (artifact,) = client.execute_code("plot", plot).artifact
    assert (cwd / artifact.file_name).read_bytes().startswith(b"\x89PNG")
    assert (cwd / "link").is_symlink()


def test_a_file_without_a_place_here_costs_no_result(
    manager: RemoteManager, tmp_path: Path
) -> None:
    cwd = tmp_path / "work"
    client = manager.get_session_client("places", cwd=cwd)
    run(client, "import os\nopen('a', 'w').write('1')")
    code = "os.remove('a')\nos.mkdir('a')\nfor name in ('a/b', 'c'): open(name, 'w').write('2')\n7"
    result = client.execute_code("x", code)
    assert (result.is_success, result.output) == (True, 7)
    (line,) = result.log
    assert line == ("warning", "files", "a/b did not come from the server: Not a directory.")
    assert (cwd / "a").read_text() == "1"
    assert (cwd / "c").read_text() == "2"
    assert client.execute_code("x", "8").log == []


def test_an_address_of_another_protocol_is_refused(tmp_path: Path) -> None:
    for url in ("ssh://ann@gpu-box/home/ann/sales", "127.0.0.1:8000"):
        with pytest.raises(KernelStartFailed, match=r"ssh -N -L 8000:.*http://127"):
            RemoteManager(url, "", tmp_path)


GREET = """
from taskweaver.plugin import Plugin, register_plugin

@register_plugin
class Greet(Plugin):
    def __call__(self):
        return self.ctx.get_session_var("who", "?")
"""


def test_torn_connections_lose_and_double_no_event(kernels: Served, tmp_path: Path) -> None:
    cells, cuts, draw = examples(6), list[int](), random.Random(7)

    def torn(sent: bytes) -> bytes:
        """Return the bytes before a cut, which comes after 1,500 on average."""
        left = int(draw.expovariate(1 / 1500))
        cuts.extend([left] if left < len(sent) else [])
        return sent[:left]

    port = int(kernels.url.rpartition(":")[2])
    with relay(port, lambda asked: asked, torn) as own:
        manager = RemoteManager(f"http://127.0.0.1:{own}", kernels.token.text, tmp_path)
        client = manager.get_session_client("torn")
        run(client, "count = 0")
        # Short lines: the last event, with all of them, has to come through one connection.
        code = "count += 1\nfor i in range(60):\n    print(i, 'x', flush=True)\ncount"
        whole = "".join(f"{i} x\n" for i in range(60))
        for number in range(1, cells + 1):
            pieces: list[str] = []
            result = client.execute_code("x", code, lambda _, text: pieces.append(text))  # noqa: B023
            assert result.is_success, result.error
            assert (result.output, "".join(pieces)) == (number, whole)
            assert "".join(result.stdout) == whole
        manager.clean_up()
    assert len(cuts) > cells


def test_plugins_and_variables(client: Client) -> None:
    client.update_session_var({"who": "ann"})
    plugins = [PluginCode("greet", GREET), PluginCode("bad", "1 / 0")]
    assert client.load_plugins(plugins).keys() == {"bad"}
    assert run(client, "greet()") == "ann"
    with pytest.raises(PluginLoadFailed, match="bad"):
        client.load_plugin("bad", "1 / 0")
    assert client.upload_file("up.txt", b"up") == "up.txt"
    assert run(client, "open('up.txt').read()") == "up"


def test_an_interrupt_ends_the_cell_there(client: Client) -> None:
    run(client, "1")
    begun = threading.Event()
    code = "import time\nprint('on', flush=True)\ntime.sleep(60)"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.execute_code, "x", code, lambda *_: begun.set())
        assert begun.wait(PATIENCE_S)
        client.interrupt()
        assert running.result(PATIENCE_S).status == "interrupted"
    with client.operation():
        client.interrupt()
        assert client.execute_code("x", "1").status == "interrupted"
    assert run(client, "2") == 2


def test_another_run_of_the_program_gets_a_fresh_kernel(
    kernels: Served, manager: RemoteManager, tmp_path: Path
) -> None:
    run(manager.get_session_client("again"), "x = 1\nopen('kept.txt', 'w').write('kept')")
    second = RemoteManager(kernels.url, kernels.token.text, tmp_path)
    client = second.get_session_client("again")
    assert not client.has_state
    assert "NameError" in client.execute_code("x", "x").reason
    assert run(client, "open('kept.txt').read()") == "kept"
    second.clean_up()


def test_a_server_that_restarts_loses_the_variables_and_no_file(tmp_path: Path) -> None:
    kernels = code_execution_service_factory(tmp_path / "env", limits=LIMITS)
    folder, cwd = tmp_path / "server", tmp_path / "cwd"
    folder.mkdir()
    cwd.mkdir()
    try:
        with served([KernelApi(kernels, folder / "users")], folder) as first:
            server = KernelServer(first.url, first.token.text, try_s=0.5)
            client = RemoteKernel(server, "one", cwd)
            client.load_plugin("greet", GREET)
            run(client, "x = 1\nopen('a.txt', 'w').write('a')")
            port = int(first.url.rpartition(":")[2])
        with pytest.raises(ServerUnreachable, match="does not answer"):
            client.execute_code("x", "1")
        with served([KernelApi(kernels, folder / "users")], folder, port=port) as second:
            second.accounts.add("x")
            server._http.headers["Authorization"] = f"Bearer {second.token.text}"
            result = client.execute_code("x", "[open('a.txt').read(), greet()]")
            assert (result.output, result.is_state_lost) == (["a", "?"], True)
            result = client.execute_code("x", "x")
            assert "NameError" in result.reason
            assert not result.is_state_lost
            client.stop()
        server.close()
    finally:
        kernels.clean_up()


def test_a_server_of_something_else_is_named(tmp_path: Path) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

    with HTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        manager = RemoteManager(f"http://127.0.0.1:{page.server_port}", "", tmp_path)
        with pytest.raises(KernelError, match="is not a server of kernels"):
            manager.get_session_client("a").execute_code("x", "1")
        manager.clean_up()
        page.shutdown()


def test_a_wrong_token_is_named(kernels: Served, tmp_path: Path) -> None:
    for token, reason in (("", "token"), ("tw-1-2", "server_token")):
        manager = RemoteManager(kernels.url, token, tmp_path)
        with pytest.raises(KernelError, match=reason):
            manager.get_session_client("a").execute_code("x", "1")
        manager.clean_up()


def test_a_project_runs_its_code_on_a_server(kernels: Served, tmp_path: Path) -> None:
    """It names the server by one key of the original, and by one of its own."""
    keys = {"execution_service.server.url": kernels.url}
    keys |= {"execution.server_token": kernels.token.text, "llm.api_type": "offline"}
    project = make_project(tmp_path / "p", keys, has_table=False)
    with TaskWeaverApp(project, trust=True) as app:
        assert kernels.url in app.sandbox
        assert app.kernels.get_kernel_mode() == "remote"
        session = app.get_session()
        first = session.send_message("run this code: x = 6 * 7; print(x)")
        assert first.state == "finished", first
        assert "42" in str(first.to_dict())
        listed = kernels.client().get("/api/v1/sessions").json()["sessions"]
        assert any(session.session_id in item["session_id"] for item in listed)
        session.fork("other")
        session.checkout("other")
        assert "another machine" in session.why_restored
        assert "NameError" in str(session.send_message("run this code: print(x)").to_dict())
        session.checkout("main")
        assert "42" in session.send_message("run this code: print(x)").post_list[-1].message
    left = kernels.client().get("/api/v1/sessions").json()["sessions"]
    assert not any(session.session_id in item["session_id"] for item in left)
