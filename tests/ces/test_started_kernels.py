"""Kernels that are started, not forked: how they end, and what is left of them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import psutil
import pytest
from kernels import answers, limited, run

from taskweaver.ces.errors import KernelStartFailed

pytestmark = pytest.mark.measured


def test_children_of_a_kernel_end_with_it(tmp_path: Path) -> None:
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    code = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(99)']\n"
        "child = subprocess.Popen(command, start_new_session=True)\n"
        "child.pid"
    )
    pid = int(run(client, code).output)
    child = psutil.Process(pid)
    manager.clean_up()
    # Killed; whoever adopted it may not have noticed yet.
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_sockets_and_descriptors_do_not_pile_up(tmp_path: Path) -> None:
    def cycle() -> None:
        manager = limited(tmp_path)
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


def test_a_kernel_that_cannot_start_says_why(tmp_path: Path) -> None:
    manager = limited(tmp_path, start_timeout_s=0.01)
    with pytest.raises(KernelStartFailed, match=r"execution\.start_timeout_s"):
        run(manager.get_session_client("slow"), "1")
    gone = manager.get_session_client("gone", cwd=tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(KernelStartFailed, match="cannot be started"):
        run(gone, "1")
    manager.clean_up()


def test_the_profile_of_ipython_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    startup = tmp_path / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "names.py").write_text("from math import tau")
    settings = startup.parent / "ipython_kernel_config.py"
    settings.write_text("c.InteractiveShellApp.extensions = ['not_there']")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    code = "import logging\nlogging.basicConfig(level=logging.DEBUG)\nround(tau, 2)"
    assert run(client, code).output == 6.28
    assert run(client, "%who").stdout == ["logging\t \n"]
    run(client, "logging.getLogger().setLevel(logging.CRITICAL)")
    run(client, "get_ipython().kernel.log.error('told')")
    assert run(client, "%reset -f --aggressive").is_success
    assert answers(client)
    manager.clean_up()
    (log,) = tmp_path.rglob("kernel.log")
    assert "WARNING: Error in loading extension: not_there" in log.read_text()
    assert "ERROR: told" in log.read_text()
    assert "DEBUG" not in log.read_text()


def test_memory_beyond_the_limit_ends_the_cell_and_names_the_key(tmp_path: Path) -> None:
    manager = limited(tmp_path, memory_limit_bytes=300 << 20)
    client = manager.get_session_client("s")
    result = run(client, "data = b'1' * (600 << 20)")
    assert (result.status, result.is_state_lost) == ("died", True)
    assert "execution.memory_limit_mb" in str(result.error)
    assert "300 MiB" in str(result.error)
    assert answers(client)
    manager.clean_up()


def test_a_forked_child_that_leaves_does_not_hang_the_session(tmp_path: Path) -> None:
    manager = limited(tmp_path, cell_timeout_s=5.0)
    client = manager.get_session_client("s")
    run(client, "import os, sys\nif os.fork() == 0:\n    sys.exit(0)")
    assert run(client, "1").status in {"ok", "timeout", "died"}
    assert answers(client)
    manager.clean_up()
