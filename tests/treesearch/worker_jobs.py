"""What workers are given to do in tests."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from taskweaver.ces.environment import WORKER_MARK
from taskweaver.treesearch.errors import PhasePlanError

pid, large, unwritable = os.getpid, bytes, threading.Lock


class Unreadable(Exception):
    """Can be written, and not be read again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


class Poison:
    """Breaks where it is read."""

    def __reduce__(self) -> Any:
        return (explode, ())


def explode() -> None:
    if WORKER_MARK not in os.environ:
        raise ValueError("poison")


def double(x: int) -> int:
    return 2 * x


def hold(sign: str) -> bool:
    """Write a sign, and come back when another one ends it."""
    Path(sign).touch()
    while not Path(sign).with_suffix(".end").exists():
        threading.Event().wait(0.02)
    return True


def meet(own: str, other: str) -> str | None:
    """Write a sign, wait for another job's, and return the GPUs that are named here."""
    Path(own).touch()
    while not Path(other).exists():
        threading.Event().wait(0.02)
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def await_lock() -> None:
    """Wait until a process waits for the lock of a file."""
    while "-> FLOCK" not in Path("/proc/locks").read_text():
        threading.Event().wait(0.02)


def fill_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def end_with(code: int) -> None:
    sys.stderr.write("these are my last words\n")
    sys.stderr.flush()
    os._exit(code)


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    sys.exit(3)


def fail_with(kind: str) -> None:
    raise {
        "plan": PhasePlanError("a.b", "is wrong"), "plain": KeyError("x"),
        "unreadable": Unreadable("a", "b"), "unwritable": ValueError(threading.Lock()),
    }[kind]  # fmt: skip


def hang(sign: str, word: str) -> None:
    """Start processes, say so, and never come back."""
    for kwargs in ({}, {"start_new_session": True}):
        subprocess.Popen(["sleep", word], **kwargs)  # type: ignore[call-overload]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(sign).touch()
    while True:
        signal.pause()


def hang_in_sandbox(sign: str, folder: str, word: str) -> str:
    def say(_: bytes) -> None:
        Path(sign).touch()

    command = f"setsid sleep {word} & echo x; sleep {word}"
    # Imported here: the workers that do the other jobs start in half of the time without it.
    from taskweaver.ces.command import Command, run_command
    from taskweaver.ces.policy import SandboxPolicy

    command_in_sandbox = Command(command, Path(folder), sandbox=SandboxPolicy())
    log: Any = SimpleNamespace(write=say)
    return run_command(command_in_sandbox, log=log).status


def leave_a_daemon(word: str) -> int:
    return subprocess.Popen(["sleep", word], start_new_session=True).pid


def own_gpu() -> tuple[str, str | None]:
    """Return the pool of this worker, and its GPU."""
    return os.environ[WORKER_MARK].partition(".")[0], os.environ.get("CUDA_VISIBLE_DEVICES")
