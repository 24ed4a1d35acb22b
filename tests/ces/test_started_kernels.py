"""Kernels that are started, not forked: how they end, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import psutil
import pytest
from kernels import Managers, Started, answers, run
from patience import PATIENCE_S

from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.process import handles

pytestmark = pytest.mark.measured


def test_children_of_a_kernel_end_with_it(started: Started) -> None:
    client = started()
    code = "import subprocess\nsubprocess.Popen(['sleep', '99'], start_new_session=True).pid"
    child = psutil.Process(int(run(client, code).output))
    client.stop()
    # Killed; whoever adopted it may not have noticed yet.
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_sockets_and_descriptors_do_not_pile_up(managers: Managers) -> None:
    def cycle() -> None:
        manager = managers()
        assert answers(manager.get_session_client("s"))
        manager.clean_up()

    cycle()
    files = psutil.Process().num_fds()
    ours = f"tw-{os.getpid()}-*"
    folders = set(Path(tempfile.gettempdir()).glob(ours))
    for _ in range(2):
        cycle()
    assert psutil.Process().num_fds() <= files + 1
    assert set(Path(tempfile.gettempdir()).glob(ours)) == folders


def test_a_kernel_that_cannot_start_says_why(managers: Managers, tmp_path: Path) -> None:
    manager = managers(start_timeout_s=0.01)
    with pytest.raises(KernelStartFailed, match=r"execution\.start_timeout_s"):
        run(manager.get_session_client("slow"), "1")
    gone = manager.get_session_client("gone", cwd=tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(KernelStartFailed, match="cannot be started"):
        run(gone, "1")


def test_the_profile_of_ipython_is_used(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    startup = tmp_path / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "names.py").write_text("from math import tau")
    settings = startup.parent / "ipython_kernel_config.py"
    settings.write_text("c.InteractiveShellApp.extensions = ['not_there']")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    client = started()
    code = "import logging\nlogging.basicConfig(level=logging.DEBUG)\nround(tau, 2)"
    assert run(client, code).output == 6.28
    assert run(client, "%who").stdout == ["logging\t \n"]
    run(client, "logging.getLogger().setLevel(logging.CRITICAL)")
    run(client, "get_ipython().kernel.log.error('told')")
    assert run(client, "%reset -f --aggressive").is_success
    assert answers(client)
    client.stop()
    (log,) = tmp_path.rglob("kernel.log")
    assert "WARNING: Error in loading extension: not_there" in log.read_text()
    assert "ERROR: told" in log.read_text()
    assert "DEBUG" not in log.read_text()


def test_a_forked_child_that_leaves_does_not_hang_the_session(started: Started) -> None:
    client = started(cell_timeout_s=5.0)
    run(client, "import os, sys\nif os.fork() == 0:\n    sys.exit(0)")
    assert run(client, "1").status in {"ok", "timeout", "died"}
    assert answers(client)


@pytest.mark.skipif(not handles.HAS_HANDLES, reason="processes have no handles on this system")
def test_a_signal_to_a_process_that_was_reaped_does_nothing() -> None:
    process = subprocess.Popen(["true"])
    handle = os.pidfd_open(process.pid)
    process.wait(PATIENCE_S)
    handles.send_signal(process.pid, handle, signal.SIGKILL)
    os.close(handle)
