"""Whatever a cell does comes back as a result: deaths, deadlines, interrupts, stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import pytest
from kernels import Managers, Started, answers, run
from patience import PATIENCE_S

from taskweaver.ces.common import Client, ExecutionResult
from taskweaver.ces.errors import KernelClosed

pytestmark = pytest.mark.measured


AWAIT = "import asyncio; await asyncio.sleep(600)"


def begun(thread: Executor, client: Client, code: str) -> Future[ExecutionResult]:
    """Run a cell in a thread, and return when it prints."""
    heard = threading.Event()
    code = f"print('started', flush=True)\n{code}"
    cell = thread.submit(client.execute_code, "x", code, lambda *_: heard.set())
    assert heard.wait(PATIENCE_S)
    return cell


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("import os; os._exit(3)", "exit status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 1)", "signal 35"),
    ],
)
def test_a_kernel_that_dies_is_replaced_and_the_loss_is_told(
    fresh: Client, code: str, part: str
) -> None:
    run(fresh, "kept = 1")
    result = run(fresh, code)
    assert (result.status, result.is_state_lost) == ("died", True)
    assert part in str(result.error)
    assert "all variables are gone" in str(result.error)
    assert "NameError" in str(run(fresh, "kept").error)


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)", "!sleep 60"])
def test_a_cell_that_takes_too_long_is_stopped_and_the_variables_stay(
    started: Started, code: str
) -> None:
    client = started(cell_timeout_s=1.0)
    run(client, "kept = 7")
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("timeout", False)
    assert "execution.cell_timeout_s" in str(result.error)
    assert run(client, "kept").output == 7


def test_a_cell_that_ignores_interrupts_is_killed(started: Started) -> None:
    client = started(cell_timeout_s=0.5)
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: signal.pause()"
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("timeout", True)
    assert answers(client)


@pytest.mark.parametrize("pause", ["import time; time.sleep(600)", AWAIT])
def test_an_interrupt_of_another_thread_ends_the_cell_only(fresh: Client, pause: str) -> None:
    run(fresh, "kept = 3")
    with ThreadPoolExecutor(1) as thread:
        cell = begun(thread, fresh, pause)
        fresh.interrupt()
        result = cell.result(PATIENCE_S)
    assert (result.status, result.is_state_lost) == ("interrupted", False)
    assert run(fresh, "kept").output == 3


def test_a_keyboard_interrupt_ends_the_cell_and_is_raised(fresh: Client) -> None:
    run(fresh, "kept = 3")

    def press(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    code = "print('started', flush=True)\nimport time\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        fresh.execute_code("x", code, press)
    assert run(fresh, "kept").output == 3


def test_a_second_keyboard_interrupt_gives_the_kernel_up(fresh: Client) -> None:
    """A cell that does not heed the first one costs the variables, not the session."""
    run(fresh, "kept = 3")
    again = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))

    def press(*_: object) -> None:
        again.start()
        os.kill(os.getpid(), signal.SIGINT)

    code = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('started', flush=True)\nwhile True: signal.pause()"
    )
    with pytest.raises(KeyboardInterrupt):
        fresh.execute_code("x", code, press)
    again.join()
    assert "NameError" in str(run(fresh, "kept").error)
    assert answers(fresh)


def test_callers_wait_for_their_turn(fresh: Client) -> None:
    with ThreadPoolExecutor(4) as threads:
        cells = [f"import time; time.sleep(0.1); {number}" for number in range(4)]
        assert [done.output for done in threads.map(partial(run, fresh), cells)] == [0, 1, 2, 3]


def test_stopping_ends_a_running_cell_and_the_client_stays_stopped(managers: Managers) -> None:
    manager = managers()
    client = manager.get_session_client("s")
    with ThreadPoolExecutor(1) as thread:
        cell = begun(thread, client, "import time; time.sleep(600)")
        manager.clean_up()
        wait([cell], PATIENCE_S)
        assert cell.done()
    with pytest.raises(KernelClosed):
        run(client, "1")
    client.stop()


def test_folders_of_killed_owners_are_removed(started: Started) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
    left = Path(tempfile.mkdtemp(prefix=f"tw-{done.stdout.strip()}-"))
    (left / "c.json").write_text("{}")
    assert answers(started())
    assert not left.exists()


def test_a_broken_interpreter_is_replaced(started: Started) -> None:
    client = started(cell_timeout_s=3.0)
    run(client, "import builtins; builtins.len = None")
    run(client, "1")
    assert answers(client)


def test_a_kernel_that_is_stopped_writes_what_its_cells_left_open(fresh: Client) -> None:
    folder = Path(str(run(fresh, "import os; os.getcwd()").output))
    (folder / "helper.py").write_text("log = open('of a module', 'w')\n")
    code = (
        "import atexit, ctypes, threading, helper\n"
        "class Leaver:\n"
        "    def __del__(self, make=os.mkdir): make('deleted')\n"
        "leaver = Leaver()\n"
        "file = open('of a cell', 'w'); file.write('a')\n"
        "helper.log.write('b')\n"
        "def last(): os.mkdir('joined')\n"
        "thread = threading.Timer(0.2, last)\n"
        "atexit.register(lambda: os.mkdir('called'))\n"
        "libc = ctypes.CDLL(None); libc.fopen.restype = ctypes.c_void_p\n"
        "handle = ctypes.c_void_p(libc.fopen(b'of the C library', b'w'))\n"
        "thread.start(); libc.fputs(b'c', handle)"
    )
    assert run(fresh, code).status == "ok"
    fresh.stop()
    written = {path.name: path.read_text() for path in folder.glob("of *")}
    assert written == {"of a cell": "a", "of a module": "b", "of the C library": "c"}
    assert {"deleted", "joined", "called"} <= {path.name for path in folder.iterdir()}
