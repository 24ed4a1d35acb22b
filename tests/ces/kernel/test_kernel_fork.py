"""A kernel forks with all its variables, and both sides live on by themselves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kernels import answers, forked, run
from patience import PATIENCE_S

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.manager import KernelManager
from taskweaver.ces.state_folder import StateFolder


@pytest.fixture
def manager(warm: KernelManager) -> Iterator[KernelManager]:
    """The owner of the kernels of this file; no kernel is left of the test before."""
    yield warm
    for client in list(warm._clients.values()):
        client.stop()


def test_both_sides_have_the_variables_and_change_them_for_themselves(
    manager: KernelManager,
) -> None:
    parent = manager.get_session_client("parent")
    run(parent, "import random; random.seed(7); xs = [1, 2]\ndef double(x):\n    return 2 * x")
    child = forked(parent, "child")
    assert run(child, "xs.append(3); double(sum(xs))").output == 12
    assert run(parent, "xs.append(10); double(sum(xs))").output == 26
    assert run(child, "xs").output == [1, 2, 3]
    assert run(child, "random.random()").output == run(parent, "random.random()").output
    assert dict(run(child, "1").variables) == {"xs": "[1, 2, 3]"}


def test_each_side_has_its_working_directory_and_prints_to_its_own_reader(
    manager: KernelManager,
) -> None:
    parent = manager.get_session_client("parent")
    run(parent, "import os, logging, sys; logging.basicConfig(level='INFO', stream=sys.stdout)")
    child = forked(parent, "child")
    cwd = "print(os.getcwd(), os.getcwd() in sys.path)"
    for client, name in ((parent, "parent"), (child, "child")):
        folder = manager.get_session_client(name).place.folder / "cwd"
        assert "".join(run(client, cwd).stdout) == f"{folder} True\n"
        run(client, f"open('made', 'w').write('{name}')")
        assert (folder / "made").read_text() == name
        said = "logging.info('hello'); os.system('echo shell')"
        assert "".join(run(client, said).stdout).splitlines() == ["INFO:root:hello", "shell"]


def test_the_death_of_one_side_does_not_touch_the_others(manager: KernelManager) -> None:
    parent = manager.get_session_client("parent")
    run(parent, "x = 1")
    snapshot = parent.snapshot()
    first = snapshot.fork("first")
    second = snapshot.fork("second")
    died = run(first, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (died.status, died.is_state_lost) == ("died", True)
    assert "SIGSEGV" in str(died.error)
    assert run(second, "x").output == 1
    run(parent, "import os; os._exit(3)")
    assert run(second, "x + 1").output == 2
    third = snapshot.fork("third")  # the snapshot outlives its kernel
    snapshot.close()
    assert run(third, "x + 2").output == 3
    assert answers(first)
    assert answers(parent)


def test_plugins_come_with_the_fork_as_they_are(manager: KernelManager) -> None:
    plugin = (
        "from taskweaver.plugin import Plugin, register_plugin\n"
        "@register_plugin\n"
        "class Counter(Plugin):\n"
        "    count = 0\n"
        "    def __call__(self):\n"
        "        self.count += 1\n"
        "        return self.count, self.ctx.get_session_var('who')\n"
    )
    parent = manager.get_session_client("parent")
    parent.load_plugin("counter", plugin)
    parent.update_session_var({"who": "me"})
    run(parent, "counter()")
    child = forked(parent, "child")
    child.load_plugin("counter", plugin)
    assert run(child, "counter()").output == "(2, 'me')"
    assert run(parent, "counter()").output == "(2, 'me')"
    run(child, "import os; os._exit(1)")
    assert run(child, "counter()").output == "(1, 'me')"


def test_forks_of_forks_stop_before_the_files_run_out(manager: KernelManager) -> None:
    client = manager.get_session_client("g0")
    run(client, "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (800, 800))")
    reasons: list[str] = []
    generation = 0
    while not reasons and generation < 100:
        generation += 1
        try:
            client = forked(client, f"g{generation}")
        except ForkRefused as error:
            reasons = error.reasons
        assert answers(client)
    assert "forked from forks too often" in reasons[0]
    assert generation > 6


def test_nothing_of_a_killed_owner_is_left(tmp_path: Path) -> None:
    script = f"""
import sys, time
from pathlib import Path
from taskweaver.ces.manager import code_execution_service_factory
manager = code_execution_service_factory(Path({str(tmp_path)!r}), is_warm=True)
client = manager.get_session_client("a")
client.execute_code("x", "1")
snapshot = client.snapshot()
child = snapshot.fork("b")
print(child.execute_code("x", "import os; os.getpid()").output, flush=True)
child.execute_code("x", "import ctypes; ctypes.PyDLL(None).sleep(1000)")
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        below = psutil.Process(owner.pid).children(recursive=True)
        started = [one for one in below if "taskweaver.ces.inkernel.launcher" in one.cmdline()]
        assert {process.pid for process in started} >= {child}
        assert len(started) == 4  # warm, a, its snapshot, b
        os.kill(owner.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(started, timeout=PATIENCE_S)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_state_lists_a_variable_that_is_larger_than_the_limit_of_its_folder(
    manager: KernelManager, tmp_path: Path
) -> None:
    client = manager.get_session_client("s")
    run(client, "large = bytes(2 << 20); small = 3")
    folder = StateFolder(tmp_path / "state", 1 << 20)
    with contextlib.closing(client.state_writer({}, folder.limit_bytes)) as writer:
        assert writer.write(folder, "main", "r1").problem == ""
    stored = folder.find(["main"], "r1")
    assert stored is not None
    assert [(item.name, "too large" in item.reason) for item in stored.lost] == [("large", True)]
    assert stored.types["small"] == "int"


def test_a_kernel_that_does_not_run_gives_no_snapshot_and_a_closed_one_no_kernel(
    manager: KernelManager,
) -> None:
    client = manager.get_session_client("s")
    with pytest.raises(ForkRefused, match="not running"):
        client.snapshot()
    run(client, "1")
    snapshot = client.snapshot()
    snapshot.close()
    snapshot.close()
    with pytest.raises(ForkRefused, match="has ended"):
        snapshot.fork("child")


def test_memory_is_shared_until_it_is_written(manager: KernelManager) -> None:
    parent = manager.get_session_client("parent")
    run(parent, "a = bytearray(b'1') * (64 << 20)")
    child = forked(parent, "child")
    before = child.footprint()
    assert before.shared_bytes > 64 << 20
    run(child, "for n in range(0, len(a), 4096): a[n] = 2")
    assert child.footprint().shared_bytes < before.shared_bytes - (60 << 20)
