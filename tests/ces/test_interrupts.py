"""An interrupt that comes while a kernel starts is kept: the cell does not begin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kernels import TIERS, Managers, answers, run
from patience import PATIENCE_S

from taskweaver.ces.common import PluginCode
from taskweaver.ces.errors import KernelClosed, KernelInterrupted
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.policy import SandboxPolicy

ENDLESS = "open('began', 'w').close()\nimport time\ntime.sleep(600)"
"""Only an interrupt ends it in time: a dropped one leaves the result ``timeout``."""
PLUGIN = "from taskweaver.plugin import *\n@register_plugin\ndef greet(): return 'hello'"


@pytest.fixture
def client(managers: Managers, tmp_path: Path) -> Kernel:
    policy = SandboxPolicy() if "bwrap" in TIERS else None
    folders = {"cwd": tmp_path / "cwd", "session_dir": tmp_path / "s"}
    return managers(policy=policy).get_session_client("s", **folders)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def wait_for_a_start(client: Kernel) -> None:
    tick = threading.Event()
    while client.state == "not started":
        tick.wait(0.001)


def test_a_cell_that_waits_for_its_kernel_does_not_begin(
    client: Kernel, thread: ThreadPoolExecutor, tmp_path: Path
) -> None:
    cell = thread.submit(run, client, ENDLESS)
    wait_for_a_start(client)
    client.interrupt()
    result = cell.result(PATIENCE_S)
    assert (result.status, result.is_success, result.is_state_lost) == ("interrupted", False, False)
    assert result.error == "The cell was interrupted before it began."
    assert not (tmp_path / "cwd" / "began").exists()
    assert answers(client)


def test_loading_plugins_ends_as_well_and_is_done_the_next_time(
    client: Kernel, thread: ThreadPoolExecutor
) -> None:
    plugin = PluginCode("greet", PLUGIN, {})
    loading = thread.submit(client.load_plugins, [plugin])
    wait_for_a_start(client)
    client.interrupt()
    assert isinstance(loading.exception(PATIENCE_S), KernelInterrupted)
    assert client.load_plugins([plugin]) == {}
    assert run(client, "greet()").output == "hello"


def test_an_interrupt_between_two_operations_of_a_block_counts(client: Kernel) -> None:
    run(client, "kept = 5")
    with client.operation():
        client.interrupt()
        assert run(client, "kept = 6").status == "interrupted"
    client.interrupt()  # nothing runs: the next cell is not meant
    assert run(client, "kept").output == 5


def test_a_stop_while_it_starts_ends_the_wait(client: Kernel, thread: ThreadPoolExecutor) -> None:
    cell = thread.submit(run, client, ENDLESS)
    wait_for_a_start(client)
    client.stop()
    assert isinstance(cell.exception(PATIENCE_S), KernelClosed)
    assert client.state == "stopped"
