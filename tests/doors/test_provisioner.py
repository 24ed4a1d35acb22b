"""Kernels of notebooks, started by stock Jupyter through the provisioner."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jupyter_client import AsyncMultiKernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from patience import PATIENCE_S

from taskweaver.ces.errors import ForkRefused
from taskweaver.cli.main import commands
from taskweaver.doors.jupyter.provisioner import NOTEBOOK_KERNELS

pytestmark = pytest.mark.anyio
GROUP = "jupyter_client.kernel_provisioners"


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the folder of some notebooks, whose kernels are the installed one's."""
    folder = tmp_path_factory.mktemp("notebooks")
    prefix = tmp_path_factory.mktemp("prefix")
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    points = tomllib.loads(pyproject.read_text("utf-8"))["project"]["entry-points"][GROUP]
    factory = KernelProvisionerFactory.instance()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in points.items():  # as the installed package has them
            patch.setitem(factory.provisioners, name, EntryPoint(name, value, GROUP))
        patch.setenv("JUPYTER_PATH", str(prefix / "share/jupyter"))
        with pytest.MonkeyPatch.context() as elsewhere:
            elsewhere.setattr(sys, "prefix", str(prefix))
            done = CliRunner().invoke(commands, ["kernelspec", "--sys-prefix"])
        assert (Path(done.output.strip()) / "kernel.json").is_file(), done.output
        try:
            yield folder
        finally:
            NOTEBOOK_KERNELS.close()


class Notebooks:
    """The kernels of a Jupyter server, each with a client."""

    def __init__(self, folder: Path) -> None:
        files = str(folder.parent)  # by default the current one, where a killed run leaves them
        self.kernels = AsyncMultiKernelManager(
            default_kernel_name="taskweaver", connection_dir=files
        )
        self.folder = folder
        self.clients: dict[str, Any] = {}

    async def start(self, **options: str) -> str:
        id_ = await self.kernels.start_kernel(cwd=str(self.folder), **options)
        await self.join(id_)
        return str(id_)

    async def join(self, id_: str) -> None:
        if id_ in self.clients:
            self.clients.pop(id_).stop_channels()
        client = self.clients[id_] = self.kernels.get_kernel(id_).client()
        client.start_channels()
        await client.wait_for_ready(timeout=PATIENCE_S)

    async def run(self, id_: str, code: str) -> str:
        """Run code; return its texts, or the name of its error."""
        found: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            found.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

        run = self.clients[id_].execute_interactive
        reply = await run(code, output_hook=take, timeout=PATIENCE_S)
        return str(reply["content"].get("ename") or "".join(found))


@pytest.fixture
async def jupyter(notebooks: Path) -> AsyncIterator[Notebooks]:
    made = Notebooks(notebooks)
    yield made
    for client in made.clients.values():
        client.stop_channels()
    await made.kernels.shutdown_all(now=True)


async def test_a_notebook_runs_in_its_folder_and_in_the_sandbox(
    notebooks: Path, jupyter: Notebooks
) -> None:
    secret = notebooks.parent / "secret.txt"
    secret.write_text("x")
    (notebooks / "data.csv").write_text("a,b\n1,2\n")
    id_ = await jupyter.start()
    assert "1  2" in await jupyter.run(id_, "pd.read_csv('data.csv')")
    assert await jupyter.run(id_, "open('new.txt', 'w').write('1')") == "1"
    assert (notebooks / "new.txt").read_text() == "1"
    (app,) = NOTEBOOK_KERNELS._apps.values()
    if app.sandbox_tier != "none":
        refused = await jupyter.run(id_, f"open({str(secret)!r})")
        assert refused in {"FileNotFoundError", "PermissionError"}


async def test_a_fork_has_all_data_and_lives_on_by_itself(jupyter: Notebooks) -> None:
    first = await jupyter.start()
    await jupyter.run(first, "rows = [1, 2]; odd = (n for n in rows)")
    fork = await jupyter.start(fork_of=first)
    await jupyter.run(fork, "rows.append(3)")
    assert await jupyter.run(first, "rows") == "[1, 2]"
    await jupyter.kernels.shutdown_kernel(first)
    assert await jupyter.run(fork, "rows, next(odd)") == "([1, 2, 3], 1)"
    await jupyter.kernels.restart_kernel(fork)
    await jupyter.join(fork)
    assert await jupyter.run(fork, "rows") == "NameError"
    with pytest.raises(ForkRefused, match="no kernel"):
        await jupyter.start(fork_of=first)


async def test_a_kernel_is_interrupted_restarted_and_seen_to_die(jupyter: Notebooks) -> None:
    id_ = await jupyter.start()
    client = jupyter.clients[id_]
    request = client.execute("print('on', flush=True)\nwhile True: pass")
    while (await client.get_iopub_msg(timeout=PATIENCE_S))["msg_type"] != "stream":
        continue
    await jupyter.kernels.interrupt_kernel(id_)
    reply = await client.get_shell_msg(timeout=PATIENCE_S)
    assert reply["parent_header"]["msg_id"] == request
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    await jupyter.run(id_, "x = 1")
    await jupyter.kernels.restart_kernel(id_)
    await jupyter.join(id_)
    assert await jupyter.run(id_, "x") == "NameError"
    provisioner = jupyter.kernels.get_kernel(id_).provisioner
    jupyter.clients[id_].execute("import os; os._exit(3)")
    await asyncio.wait_for(provisioner.wait(), PATIENCE_S)
    assert not await jupyter.kernels.is_alive(id_)
