"""New sessions in sandboxes: time and processor time to the first result, alone and many at once.

The ways are measured in turn: a fork of a warm process that enters the sandbox, a process started
in each sandbox from nothing that imports the usual libraries there (one bubblewrap for each), and a
fork of a warm process without a sandbox. The session uses pandas at once.
The first session of a program is not counted. Run with ``python -m bench.sandbox_sessions``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from unittest import mock

import psutil

from bench.common import sized
from taskweaver.ces.common import Manager
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.zygote import Zygote

ROUNDS, MANY = sized((10, 20), (1, 1))
CODE = sized("int(pd.DataFrame({'a': [1, 2]}).a.sum())", "1 + 2")
WAYS = ("entered", "started", "plain")
TITLES = {
    "entered": "sandbox, forked from a warm process",
    "started": "sandbox, started in it from nothing",
    "plain": "no sandbox, forked from a warm process",
}
_NANOSECONDS = 1e9


def run() -> dict[str, float]:
    """Return seconds for each way: ``first_*``, ``cpu_*``, ``many_*``, ``cpu_many_*``."""
    figures: dict[str, float] = {"cores": float(os.cpu_count() or 1)}
    for way in WAYS:
        with _opened(way) as manager:
            measured = [_measure(manager, [f"one{n}"]) for n in range(ROUNDS)]
            figures[f"first_{way}"] = statistics.median(wall for wall, _ in measured)
            figures[f"cpu_{way}"] = statistics.median(cpu for _, cpu in measured)
            wall, cpu = _measure(manager, [f"many{n}" for n in range(MANY)])
            figures[f"many_{way}"], figures[f"cpu_many_{way}"] = wall, cpu / MANY
    return figures


@contextmanager
def _opened(way: str) -> Iterator[Manager]:
    """Give an owner of kernels that has had its first session."""
    policy = None if way == "plain" else SandboxPolicy()
    none_is_warm = mock.patch.object(Zygote, "template", return_value=None)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if way == "started":
            stack.enter_context(none_is_warm)
        manager = code_execution_service_factory(Path(folder), sandbox=policy, is_warm=True)
        try:
            _use(manager, "first")
            yield manager
        finally:
            manager.clean_up()


def _measure(manager: Manager, names: list[str]) -> tuple[float, float]:
    """Return the seconds until all of some new sessions have a result, and their processor time."""
    cpu, since = _cpu_s(), perf_counter()
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: _use(manager, name), names))
    figures = perf_counter() - since, _cpu_s() - cpu
    for name in names:
        manager.get_session_client(name).stop()
    return figures


def _use(manager: Manager, name: str) -> None:
    result = manager.get_session_client(name).execute_code("x", CODE)
    if result.output != 3:
        raise RuntimeError(result.error)


def _cpu_s() -> float:
    """Return the processor time of this process and of all below it, the ended ones included."""
    own = psutil.Process()
    return sum(map(_cpu_of, [own, *own.children(recursive=True)]))


def _cpu_of(process: psutil.Process) -> float:
    with suppress(psutil.Error, OSError):
        ended = process.cpu_times()
        threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        used = sum(int(path.read_text().split()[0]) for path in threads)
        return used / _NANOSECONDS + ended.children_user + ended.children_system
    return 0.0


def show(figures: dict[str, float]) -> None:
    """Print the table."""
    print(f"new session to first result          alone         {MANY} at once")
    for way in WAYS:
        wall, many = figures[f"first_{way}"], figures[f"many_{way}"]
        cpu, cpu_many = figures[f"cpu_{way}"], figures[f"cpu_many_{way}"]
        print(f"{TITLES[way]:40} {wall:6.3f} s {many:8.2f} s;", end=" ")
        print(f"processor time each {cpu:.3f} s, {cpu_many:.3f} s")
    most = MANY * figures["cpu_many_entered"] / figures["cores"] + 0.5
    print(f"goals: 0.2 s alone, 0.15 s of processor time, {most:.2f} s for {MANY} at once")


if __name__ == "__main__":
    show(run())
