"""Whatever a cell does comes back as a result: deaths, deadlines, interrupts, stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from kernels import answers, limited, run
from patience import PATIENCE_S

from taskweaver.ces.common import Client, ExecutionResult
from taskweaver.ces.errors import KernelClosed

pytestmark = pytest.mark.measured


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
    tmp_path: Path, code: str
) -> None:
    manager = limited(tmp_path, cell_timeout_s=1.0)
    client = manager.get_session_client("s")
    run(client, "kept = 7")
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("timeout", False)
    assert "execution.cell_timeout_s" in str(result.error)
    assert run(client, "kept").output == 7
    manager.clean_up()


def test_a_cell_that_ignores_interrupts_is_killed(tmp_path: Path) -> None:
    manager = limited(tmp_path, cell_timeout_s=0.5)
    client = manager.get_session_client("s")
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: signal.pause()"
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("timeout", True)
    assert answers(client)
    manager.clean_up()


def test_an_interrupt_from_another_thread_ends_the_cell_only(fresh: Client) -> None:
    run(fresh, "kept = 3")
    heard = threading.Event()
    results: list[ExecutionResult] = []
    code = "print('started', flush=True)\nimport time\ntime.sleep(1000)"
    thread = threading.Thread(
        target=lambda: results.append(fresh.execute_code("x", code, lambda *_: heard.set()))
    )
    thread.start()
    assert heard.wait(PATIENCE_S)
    fresh.interrupt()
    thread.join(PATIENCE_S)
    assert results[0].status == "interrupted"
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
    results: dict[int, object] = {}

    def work(number: int) -> None:
        results[number] = fresh.execute_code(
            str(number), f"import time; time.sleep(0.1); {number}"
        ).output

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert results == {0: 0, 1: 1, 2: 2, 3: 3}


def test_stopping_ends_a_running_cell_and_the_client_stays_stopped(tmp_path: Path) -> None:
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    heard = threading.Event()
    code = "print('started', flush=True)\nimport time\ntime.sleep(1000)"
    thread = threading.Thread(target=lambda: client.execute_code("x", code, lambda *_: heard.set()))
    thread.start()
    assert heard.wait(PATIENCE_S)
    manager.clean_up()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    with pytest.raises(KernelClosed):
        run(client, "1")
    client.stop()


def test_folders_of_killed_owners_are_removed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
    left = Path(tempfile.mkdtemp(prefix=f"tw-{done.stdout.strip()}-"))
    (left / "c.json").write_text("{}")
    manager = limited(tmp_path)
    assert answers(manager.get_session_client("s"))
    manager.clean_up()
    assert not left.exists()


def test_a_broken_interpreter_is_replaced(tmp_path: Path) -> None:
    manager = limited(tmp_path, cell_timeout_s=3.0)
    client = manager.get_session_client("s")
    run(client, "import builtins; builtins.len = None")
    run(client, "1")
    assert answers(client)
    manager.clean_up()


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


def test_an_interrupt_ends_a_cell_that_awaits_and_keeps_the_variables(fresh: Client) -> None:
    run(fresh, "kept = 5")

    def interrupt(*_: object) -> None:
        fresh.interrupt()

    code = "import asyncio\nprint('began', flush=True)\nawait asyncio.sleep(600)"
    result = fresh.execute_code("x", code, interrupt)
    assert (result.status, result.is_state_lost) == ("interrupted", False)
    assert run(fresh, "kept").output == 5
