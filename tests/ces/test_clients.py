"""The owner of kernels lets go of clients that were stopped, and of what they shared."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels import Managers, Started, needs_bwrap, run

from taskweaver.ces.policy import SandboxPolicy


def test_clients_that_were_stopped_are_released(managers: Managers) -> None:
    manager, kept = managers(), []
    for number in range(50):
        client = manager.get_session_client(str(number))
        kept.append(weakref.ref(client))
        client.stop()
        client.stop()
    del client
    gc.collect()
    assert [reference for reference in kept if reference() is not None] == []


def test_the_client_of_an_id_is_a_new_one_after_its_end(managers: Managers) -> None:
    manager = managers()
    first = manager.get_session_client("s")
    assert manager.get_session_client("s") is first
    run(first, "x = 1")
    first.stop()
    second = manager.get_session_client("s")
    assert second is not first
    first.stop()  # again: the second is not affected
    assert manager.get_session_client("s") is second
    assert "NameError" in str(run(second, "x").error)


def test_a_client_that_is_stopped_while_it_starts_launches_no_process(started: Started) -> None:
    client = started()
    client.restore_from(client.stop)  # the state is asked for on the way to the launch
    client.start()
    assert client.state == "stopped"


@needs_bwrap
def test_a_sandbox_ends_with_the_last_client_of_its_folder(
    managers: Managers, tmp_path: Path
) -> None:
    manager = managers(policy=SandboxPolicy())
    one, two = (manager.get_session_client(name, session_dir=tmp_path / "s") for name in "ab")
    run(one, "open('/tmp/shared', 'w').close()")
    one.stop()
    assert run(two, "import os; os.path.exists('/tmp/shared')").output is True
    two.stop()
    three = manager.get_session_client("c", session_dir=tmp_path / "s")
    assert run(three, "import os; os.path.exists('/tmp/shared')").output is False


def test_clients_come_and_go_in_many_threads(managers: Managers, tmp_path: Path) -> None:
    manager, begin = managers(), threading.Barrier(8)

    def work(number: int) -> None:
        begin.wait()
        for turn in range(20):
            folder = tmp_path / str(turn % 3)
            manager.get_session_client(f"{number}-{turn}", session_dir=folder).stop()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
