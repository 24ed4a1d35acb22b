"""Guards every test stands behind: no network but loopback, nothing left running."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
# Made once for all tests, also for those that give a command a home folder of its own.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / "taskweaver-tests-cache")
os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir()) / "taskweaver-tests-state")

# How long an example takes is the machine's affair; speed is measured in bench/.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

_TASKS = Path("/proc/self/task")
_LOOPBACK = ("127.", "::1", "localhost")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for tests: they wait for a third of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, (cores or 1) * 3 // 2)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave the machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        is_local = self.family == socket.AF_UNIX or str(address[0]).startswith(_LOOPBACK)  # type: ignore[index]
        if not is_local:
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _no_configuration_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide keys and endpoints of the machine the tests run on; never probe its ports."""
    for name in list(os.environ):
        if name.startswith(("LLM_", "OPENAI_", "AZURE_", "OTEL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LLM_AUTO_DETECT", "false")


@pytest.fixture(autouse=True)
def _measure_other_processes_where_they_are_the_point(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measure the coverage of processes that a test starts if it is marked ``measured``.

    Measuring costs a process 0.2 s before its first line, and half as much again of its imports.
    """
    if request.node.get_closest_marker("measured") is None:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


def _descendants() -> list[psutil.Process]:
    """Return the processes below this one; most tests have none, which is cheap to see."""
    try:
        has_children = any((task / "children").read_bytes() for task in _TASKS.iterdir())
    except OSError:  # a thread has just ended, or the system has no such files
        has_children = True
    return psutil.Process().children(recursive=True) if has_children else []


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a child process or a non-daemon thread behind."""
    threads = set(threading.enumerate())
    children = {child.pid for child in _descendants()}
    yield
    late = [t for t in threading.enumerate() if t not in threads and not t.daemon]
    for thread in late:
        thread.join(5)
    assert not [t for t in late if t.is_alive()], "threads left running"
    new = [c for c in _descendants() if c.pid not in children]
    _, alive = psutil.wait_procs(new, timeout=5)
    assert not alive, f"processes left running: {alive}"
