"""A Dask scheduler and workers on loopback: real processes, forked from one that has imported all.

As a program it reads commands, a line of JSON each, and answers each with one: it starts a
scheduler or a worker in a process of its own, which ends with it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from taskweaver.treesearch.execution.machine import collect_environment, copy_rate

_HERE = Path(__file__).parent
_PR_SET_PDEATHSIG = 1
_FRUGAL = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
"""Without what Dask measures in the background, a hundred times a second, for its dashboard."""


@dataclass
class Cluster:
    """A scheduler, called ``scheduler``, and its workers, which a program starts. Close it."""

    program: subprocess.Popen[str]
    address: str = ""
    pids: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """Start a scheduler; with one that was killed its workers went, too."""
        self.address = self._start("scheduler", {})

    def add(self, name: str, *, threads: int = 1, **facts: Any) -> None:
        """Start a worker, and wait until it is connected; see `fake` for `facts`."""
        self._start(name, {"address": self.address, "threads": threads, "facts": facts})

    def _start(self, name: str, command: Mapping[str, Any]) -> str:
        self.program.stdin.write(json.dumps({"name": name, **command}) + "\n")
        self.program.stdin.flush()
        answer = json.loads(self.program.stdout.readline())
        self.pids[name] = answer["pid"]
        return str(answer["address"])

    def kill(self, name: str) -> None:
        """Kill a process, and wait for its end."""
        pid = self.pids.pop(name)
        end = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        with os.fdopen(end):
            select.select([end], [], [], 60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.pids):
            with suppress(ProcessLookupError):  # workers end without their scheduler
                self.kill(name)


@contextmanager
def cluster_program(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the program, whose log is in a folder."""
    paths = [str(_HERE), str(_HERE.parent), str(_HERE.parents[1])]
    with subprocess.Popen(
        [sys.executable, __file__, str(folder / "cluster.log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ) | _FRUGAL | {"PYTHONPATH": os.pathsep.join(paths)},
        text=True,
    ) as program:
        yield program
        program.communicate()


def fake(host: str = "", cpu: str = "", is_blind: bool = False, **variables: str) -> None:
    """Make this process one of another machine, with these variables in its environment.

    One that is blind does not share the file system.
    """
    import socket

    from taskweaver.treesearch.execution import machine

    os.environ.update(variables)
    if host:
        socket.gethostname = lambda: host
    if cpu:
        facts = machine.collect_environment() | {"cpu": cpu}
        machine.collect_environment = lambda: facts
    if is_blind:
        from taskweaver.treesearch.execution.executors import dask_worker

        dask_worker.probe_machine = lambda request, _: machine.probe_machine(
            request, Path("/nowhere")
        )


async def _serve(command: Mapping[str, Any], say: Callable[[str], None]) -> None:
    from distributed import Scheduler, Worker

    if command["name"] == "scheduler":
        made = Scheduler(host="127.0.0.1", port=0, dashboard=False)
    else:
        own = {"name": command["name"], "nthreads": command["threads"]}
        made = Worker(command["address"], host="127.0.0.1", dashboard=False, **own)
    async with made:
        say(made.address)
        await made.finished()


def _child(command: Mapping[str, Any], sink: int) -> None:
    """Be a scheduler or a worker, until it is closed or killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def say(address: str) -> None:
        os.write(sink, (json.dumps({"pid": os.getpid(), "address": address}) + "\n").encode())
        os.close(sink)

    fake(**command.get("facts", {}))
    asyncio.run(_serve(command, say))


def main() -> None:
    """Start what is asked for, until the end of the input."""
    import distributed  # noqa: F401

    import taskweaver.treesearch.execution.phases  # noqa: F401

    copy_rate()  # measured once for all, and asked for once
    collect_environment()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    for line in sys.stdin:
        source, sink = os.pipe()
        if os.fork() == 0:
            os.close(source)
            try:
                _child(json.loads(line), sink)
            finally:
                os._exit(0)
        os.close(sink)
        with os.fdopen(source) as said:
            print(said.readline().strip(), flush=True)


if __name__ == "__main__":
    main()
