"""The route that forks the kernel of a notebook, in a real Jupyter server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import nbformat
import pytest
import websocket
from click.testing import CliRunner
from jupyter_client.session import Session
from patience import PATIENCE_S

from taskweaver.cli.main import commands
from taskweaver.config.config_mgt import env_name

GROUP = "jupyter_client.kernel_provisioners"
TOKEN = "a-token"
JUPYTER = """\
from importlib.metadata import EntryPoint
from jupyter_client.provisioning import KernelProvisionerFactory

provisioners = KernelProvisionerFactory.instance().provisioners
for name, value in POINTS.items():  # as the installed package has them
    provisioners[name] = EntryPoint(name, value, "GROUP")
c.ServerApp.jpserver_extensions = {"taskweaver.doors.jupyter.fork_api": True}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """Give a client of a Jupyter server with one notebook."""
    folder = tmp_path_factory.mktemp("jupyter")
    notebooks, prefix = folder / "notebooks", folder / "prefix"
    notebooks.mkdir()
    cells = [nbformat.v4.new_code_cell("rows = [1, 2]")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebooks / "cars.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "prefix", str(prefix))
        assert CliRunner().invoke(commands, ["kernelspec", "--sys-prefix"]).exit_code == 0
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    points = repr(pyproject["project"]["entry-points"][GROUP])
    config = folder / "config.py"
    config.write_text(JUPYTER.replace("POINTS", points).replace("GROUP", GROUP))
    environment = {
        "JUPYTER_PATH": str(prefix / "share/jupyter"), "JUPYTER_RUNTIME_DIR": str(folder / "run"),
        "JUPYTER_CONFIG_DIR": str(folder / "none"), "PYTHONPATH": os.pathsep.join(sys.path),
        env_name("execution.zygote"): "false", env_name("execution.sandbox"): "none",
    }  # fmt: skip
    command = [sys.executable, "-m", "jupyter_server", f"--config={config}", "--port=0"]
    command += ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.root_dir={notebooks}", f"--IdentityProvider.token={TOKEN}"]
    with subprocess.Popen(
        command, env=os.environ | environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        drain = threading.Thread(target=server.stderr.read, daemon=True)
        try:
            log, url = "", None
            while url is None:
                line = server.stderr.readline()
                assert line, log
                log += line
                url = re.search(r"http://127\.0\.0\.1:[1-9]\d*", line)
            drain.start()
            headers = {"Authorization": f"token {TOKEN}"}
            with httpx2.Client(base_url=url[0], headers=headers, timeout=PATIENCE_S) as found:
                yield found
        finally:
            server.terminate()
            server.wait(PATIENCE_S)
            drain.join()


def run(client: httpx2.Client, kernel: str, code: str) -> str:
    """Run code in a kernel as a notebook does; return its value or error."""
    url = str(client.base_url).replace("http", "ws", 1).rstrip("/")
    request = Session().msg("execute_request", {"code": code, "silent": False})
    own, address = request["header"]["msg_id"], f"{url}/api/kernels/{kernel}/channels"
    sent = [f"Authorization: token {TOKEN}"]
    value = ""
    with closing(websocket.create_connection(address, header=sent, timeout=PATIENCE_S)) as channels:
        channels.send(json.dumps(request | {"channel": "shell"}, default=str))
        while True:
            message = json.loads(channels.recv())
            if message["parent_header"].get("msg_id") == own:
                content = message["content"]
                value += content.get("data", {}).get("text/plain", "") + content.get("ename", "")
                if content.get("execution_state") == "idle":
                    return value


def test_the_fork_of_a_kernel_has_its_data_and_a_copy_of_its_notebook(
    client: httpx2.Client,
) -> None:
    kernel = client.post("/api/kernels", json={"name": "taskweaver"}).json()["id"]
    assert run(client, kernel, "rows = [1, 2]; odd = (n for n in rows); rows") == "[1, 2]"
    fork = client.post(f"/taskweaver/kernels/{kernel}/fork").json()
    assert fork["path"] == ""
    assert run(client, fork["id"], "rows") == "[1, 2]"
    assert client.delete(f"/api/kernels/{fork['id']}").status_code == 204

    body = {"path": "cars.ipynb", "name": "cars", "type": "notebook", "kernel": {"id": kernel}}
    assert client.post("/api/sessions", json=body).json()["kernel"]["id"] == kernel
    made = client.post(f"/taskweaver/kernels/{kernel}/fork")
    assert made.status_code == 201, made.text
    fork = made.json()
    assert (fork["path"], fork["name"]) == ("cars-Copy1.ipynb", "taskweaver")
    assert run(client, fork["id"], "rows.append(3); (rows, next(odd))") == "([1, 2, 3], 1)"
    assert run(client, kernel, "rows") == "[1, 2]"

    opened = {one["path"]: one["kernel"]["id"] for one in client.get("/api/sessions").json()}
    assert opened == {"cars.ipynb": kernel, "cars-Copy1.ipynb": fork["id"]}
    copy = client.get("/api/contents/cars-Copy1.ipynb").json()["content"]
    assert copy["cells"][0]["source"] == "rows = [1, 2]"

    assert client.delete(f"/api/kernels/{kernel}").status_code == 204
    assert run(client, fork["id"], "len(rows)") == "3"
