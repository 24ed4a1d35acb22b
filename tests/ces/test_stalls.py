"""Processes in a sandbox that hold its kernels and templates: rounds end all the same."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kernels import LIMITS, Managers, answers, needs_bwrap, run
from patience import PATIENCE_S
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.session.session import Session

pytestmark = needs_bwrap
# Far longer than a test may take: what waits for a start until its limit fails by the time limit.
PATIENT = replace(LIMITS, start_timeout_s=600.0, cell_timeout_s=600.0)
STOP_OTHERS = (
    "import os, signal\n"
    "others = {int(p) for p in os.listdir('/proc') if p.isdigit()} - {1, os.getpid()}\n"
    "for pid in others: os.kill(pid, signal.SIGSTOP)"
)
# Holds all processes but itself, again and again, from a process that outlives the cell.
HOLD_ALL = """
import subprocess, sys
code = '''
import os, signal, time
while True:
    for pid in {int(p) for p in os.listdir("/proc") if p.isdigit()} - {1, os.getpid()}:
        try: os.kill(pid, signal.SIGSTOP)
        except OSError: pass
    time.sleep(0.01)
'''
subprocess.Popen([sys.executable, '-I', '-c', code], start_new_session=True).pid
"""
SWAP_HOMES = """
import glob, os, subprocess, sys
code = '''
import os, sys, time
parent = sys.argv[1]
while True:
    for name in os.listdir(parent):
        if name.startswith("tw-"):
            try:
                os.rename(parent + "/" + name, parent + "/aside-" + name)
                os.symlink("/nowhere", parent + "/" + name)
            except OSError: pass
    time.sleep(0.001)
'''
homes = os.path.dirname(os.path.dirname(glob.glob('TEMP/tw-*/**/c.json', recursive=True)[0]))
subprocess.Popen([sys.executable, '-I', '-c', code, homes], start_new_session=True).pid
""".replace("TEMP", tempfile.gettempdir())


@pytest.fixture
def client(managers: Managers) -> Kernel:
    return managers(policy=SandboxPolicy(), limits=PATIENT).get_session_client("s")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    limits = dict.fromkeys(("execution.start_timeout_s", "execution.cell_timeout_s"), 600.0)
    keys = {"execution.sandbox": "bwrap", **limits}
    project = make_project(tmp_path / "project", keys, has_table=False)
    with TaskWeaverApp(project, model=lambda _: "") as app:
        yield app.get_session()


def result(session: Session, code: str) -> str:
    return session.run_code(code).post_list[-1].message


def test_a_kernel_is_replaced_where_its_template_was_held(client: Kernel) -> None:
    assert run(client, STOP_OTHERS).is_success
    assert not run(client, "os._exit(1)").is_success
    assert answers(client)


def test_a_snapshot_that_was_stopped_is_refused_and_closed_at_once(client: Kernel) -> None:
    assert answers(client)
    snapshot = client.snapshot()
    assert run(client, STOP_OTHERS).is_success
    with pytest.raises(ForkRefused, match="stopped, by a signal or a debugger"):
        snapshot.fork("fork")
    snapshot.close()
    assert answers(client)


def kernel_of(client: Kernel) -> psutil.Process:
    """Return a sandboxed kernel as it is seen from outside."""
    inner, cwd = run(client, "import os; [str(os.getpid()), os.getcwd()]").output
    for process in psutil.Process().children(recursive=True):
        status = Path(f"/proc/{process.pid}/status").read_text()
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
        if numbers[-1] == inner and process.cwd() == cwd:
            return process
    raise AssertionError("the kernel is not found")


def test_a_kernel_that_is_held_gives_no_snapshot_and_is_not_waited_for(client: Kernel) -> None:
    kernel = kernel_of(client)
    kernel.send_signal(signal.SIGSTOP)
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while kernel.status() != psutil.STATUS_STOPPED and time.monotonic() < deadline:
        pause.wait(0.01)  # a signal takes effect when the process is scheduled
    for take in (client.snapshot, lambda: client.state_writer({}, 1 << 20)):
        with pytest.raises(ForkRefused, match="stopped, by a signal or a debugger"):
            take()
    kernel.send_signal(signal.SIGCONT)
    assert answers(client)
    client.snapshot().close()


def test_rounds_end_while_a_process_swaps_the_folders_of_kernels(session: Session) -> None:
    assert "Traceback" not in result(session, SWAP_HOMES)
    for number in range(4):
        assert str(number + 10) in result(session, f"{number} + 10")
    session.run_code("import os; os._exit(1)")
    assert session.run_code("1").state in {"finished", "failed"}


def test_rounds_end_while_a_process_holds_all_others(session: Session) -> None:
    session.run_code("x = 1")
    is_over = threading.Event()

    def interrupt_often() -> None:  # a cell that is held has no limit of time
        while not is_over.wait(5):
            session.interrupt()

    user = threading.Thread(target=interrupt_often)
    user.start()
    try:
        states = [session.run_code(code).state for code in (HOLD_ALL, *["x + 1"] * 3)]
    finally:
        is_over.set()
        user.join()
    assert set(states) <= {"finished", "failed"}
