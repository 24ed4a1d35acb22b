"""The shipped plugins where they are used: in a kernel, in a sandbox where there is one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kernels import LIMITS, run
from patience import PATIENCE_S
from shipped import REGISTRY, SHIPPED
from support import has_bwrap

from taskweaver.ces.common import PluginCode
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy

pytestmark = pytest.mark.measured

SETUP = """
import pandas as pd, numpy as np
at = np.arange(60)
df = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=60), "v": at + 5 * (at % 7 == 0)})
open("page.html", "w").write("<p>words</p>")
import duckdb
with duckdb.connect("lake.duckdb") as lake: lake.execute("CREATE TABLE x AS SELECT 7 AS n")
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    policy = SandboxPolicy() if has_bwrap() else None
    folder = tmp_path_factory.mktemp("gallery")
    manager = code_execution_service_factory(folder, limits=LIMITS, sandbox=policy)
    client = manager.get_session_client("gallery", cwd=folder / "cwd")
    entries = [REGISTRY.plugins[name] for name in SHIPPED]
    codes = [PluginCode(entry.name, entry.source(), entry.config) for entry in entries]
    assert client.load_plugins(codes) == {}
    assert run(client, SETUP).is_success
    yield client
    manager.clean_up()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_tests_in_a_plugins_file_pass_in_the_kernel(kernel: Kernel, name: str) -> None:
    results = kernel.test_plugin(name)
    assert results
    assert [failure for _, failure in results if failure] == []


@pytest.mark.parametrize(
    ("cell", "kinds"),
    [
        ("table_profile(df, 'Small')[1]", ["html"]),
        ("time_series_forecast(df, 't', 'v', 5)[1]", ["image"]),
        ("document_text('page.html')[0]", []),
        ("sql_query('SELECT n FROM x', 'duckdb:///lake.duckdb')[1]", []),
    ],
)
def test_a_cell_gets_texts_and_files_from_them(kernel: Kernel, cell: str, kinds: list[str]) -> None:
    result = run(kernel, cell)
    assert result.is_success, result.error
    assert isinstance(result.output, str)
    assert [artifact.type for artifact in result.artifact] == kinds
    assert not result.stderr


def test_a_stop_in_the_middle_of_long_work_keeps_what_was_done(kernel: Kernel) -> None:
    seen = threading.Event()
    code = "done, about = long_running_demo(3, 3)\nabout"
    with ThreadPoolExecutor(1) as thread:
        cell = thread.submit(kernel.execute_code, "x", code, lambda *_: seen.set())
        assert seen.wait(PATIENCE_S)
        kernel.interrupt()
        assert cell.result(PATIENCE_S).output == "Interrupted after 1 of 3 steps."
    assert run(kernel, "done").output == 1
