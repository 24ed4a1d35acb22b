"""An interrupt that comes while a kernel starts is kept: the cell does not begin."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kernels import LIMITS, answers, run
from patience import PATIENCE_S
from support import has_bwrap

from taskweaver.ces.common import Client, ExecutionResult, PluginCode
from taskweaver.ces.errors import KernelClosed, KernelInterrupted
from taskweaver.ces.manager import KernelManager, code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy

ENDLESS = "open('began', 'w').close()\nimport time\ntime.sleep(600)"
"""Only an interrupt ends it in time: a dropped one leaves the result ``timeout``."""


@pytest.fixture
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], KernelManager]:
    policy = SandboxPolicy() if has_bwrap() else None

    def make() -> KernelManager:
        made = code_execution_service_factory(tmp_path, limits=LIMITS, sandbox=policy)
        assert isinstance(made, KernelManager)
        request.addfinalizer(made.clean_up)
        return made

    return make


class Background:
    """A call in a thread of its own, with its result or its error."""

    def __init__(self, call: Callable[[], ExecutionResult | object]) -> None:
        self.outcome: object = None
        self._call = call
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except (KernelClosed, KernelInterrupted) as error:
            self.outcome = error

    def end(self) -> object:
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        return self.outcome


def starts(client: Client) -> None:
    """Wait until a kernel is being started."""
    tick = threading.Event()
    while client.state == "not started":
        tick.wait(0.001)


def test_a_cell_that_waits_for_its_kernel_does_not_begin(
    manager: Callable[[], KernelManager], tmp_path: Path
) -> None:
    client = manager().get_session_client("s", cwd=tmp_path / "cwd", session_dir=tmp_path / "s")
    cell = Background(lambda: run(client, ENDLESS))
    starts(client)
    client.interrupt()
    result = cell.end()
    assert isinstance(result, ExecutionResult)
    assert (result.status, result.is_success, result.is_state_lost) == ("interrupted", False, False)
    assert result.error == "The cell was interrupted before it began."
    assert not (tmp_path / "cwd" / "began").exists()
    assert answers(client)


def test_loading_plugins_ends_as_well_and_is_done_the_next_time(
    manager: Callable[[], KernelManager],
) -> None:
    client = manager().get_session_client("s")
    plugin = PluginCode(
        "greet",
        "from taskweaver.plugin import Plugin, register_plugin\n\n\n@register_plugin\n"
        "class Greet(Plugin):\n    def __call__(self):\n        return 'hello'\n",
        {},
    )
    loading = Background(lambda: client.load_plugins([plugin]))
    starts(client)
    client.interrupt()
    assert isinstance(loading.end(), KernelInterrupted)
    assert client.load_plugins([plugin]) == {}
    assert run(client, "greet()").output == "hello"


def test_an_interrupt_between_two_operations_of_a_block_counts(
    manager: Callable[[], KernelManager],
) -> None:
    client = manager().get_session_client("s")
    run(client, "kept = 5")
    with client.operation():
        client.interrupt()
        assert run(client, "kept = 6").status == "interrupted"
    client.interrupt()  # nothing runs: the next cell is not meant
    assert run(client, "kept").output == 5


def test_a_stop_while_it_starts_ends_the_wait(manager: Callable[[], KernelManager]) -> None:
    client = manager().get_session_client("s")
    cell = Background(lambda: run(client, ENDLESS))
    starts(client)
    client.stop()
    assert isinstance(cell.end(), KernelClosed)
    assert client.state == "stopped"
