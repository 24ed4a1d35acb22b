"""The bounds of a session as its owner sees them: idle costs nothing, leftovers are watched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kernels import LIMITS, answers, run, warmed
from patience import PATIENCE_S

from taskweaver.ces.bounds import cgroup
from taskweaver.ces.common import Client, Manager

BOUNDED = replace(
    LIMITS, memory_limit_bytes=300 << 20, process_limit=200, folder_limit_bytes=24 << 20,
    log_limit_bytes=1 << 20,
)  # fmt: skip
LEFT = "import subprocess; left = [subprocess.Popen(['sleep', '60']) for _ in range(2)]"


@pytest.fixture(scope="module", params=["watched", pytest.param("groups", marks=pytest.mark.long)])
def manager(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Manager]:
    """A manager with a template, which is there before the first test."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "watched":
            patch.setattr(cgroup, "parents", lambda _: iter(()))
        with warmed(tmp_path_factory.mktemp("guard"), BOUNDED) as made:
            yield made


@pytest.fixture
def client(manager: Manager, tmp_path: Path) -> Iterator[Client]:
    made = manager.get_session_client(str(tmp_path), session_dir=tmp_path, cwd=tmp_path / "cwd")
    yield made
    made.stop()


def watches() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "leftovers"]


def wait_for_the_watch() -> None:
    """Wait until the watch has seen that nothing is left."""
    for thread in watches():
        thread.join(PATIENCE_S)
    assert not watches()


def test_an_idle_session_has_no_thread_of_its_bounds(manager: Manager, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    client = manager.get_session_client(str(tmp_path), session_dir=tmp_path)
    assert answers(client)
    new = {
        thread.name.rpartition("_")[0] or thread.name
        for thread in {*threading.enumerate()} - before
    }
    assert new <= {"kernel-launcher", "idle-output"}  # of all kernels
    assert client.left_behind() == ""
    client.stop()


def test_the_watch_of_leftovers_ends_with_them(client: Client) -> None:
    result = run(client, LEFT)
    said = "2 processes that cells started still run: sleep (2)."
    assert ("warning", "processes", said) in result.log
    assert client.left_behind() == said
    assert len(watches()) == 1
    for process in psutil.Process().children(recursive=True):
        if process.cmdline() == ["sleep", "60"]:
            process.kill()
    wait_for_the_watch()
    assert client.left_behind() == ""


def test_a_process_that_grows_after_its_cell_is_ended(client: Client) -> None:
    code = "import time; time.sleep(1); x = b'1' * (450 << 20); time.sleep(60)"
    run(client, f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}])")
    assert client.left_behind() == "1 process that cells started still runs: python."
    wait_for_the_watch()
    assert client.left_behind() == ""
    result = run(client, "20 + 1")
    assert result.output == 21
    assert "execution.memory_limit_mb" in str(result.log)


def test_a_log_that_grows_after_its_cell_is_cut(client: Client, tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen('sleep 1; head -c 5000000 /dev/zero; sleep 60', shell=True,\n"
        "    stdout=sys.stdout._original_stdstream_copy)"
    )
    run(client, code)
    wait_for_the_watch()
    assert client.left_behind() == ""
    assert (tmp_path / "kernel.log").stat().st_size <= 1 << 20
    assert "execution.log_limit_mb" in str(run(client, "1").log)


def test_forks_and_snapshots_share_the_bound_and_count_shared_pages_once(
    manager: Manager, client: Client, tmp_path: Path
) -> None:
    run(client, "x = np.ones(15 << 20); size = x.nbytes")
    snapshot = client.snapshot()
    forks = [
        manager.fork_session_client(
            snapshot, f"{tmp_path} {name}", session_dir=tmp_path, cwd=tmp_path / name
        )
        for name in ("one", "two")
    ]
    # Four processes with 120 MiB each, shared: more than the bound if each counted.
    wait = "import time; time.sleep(0.6); size >> 20"
    assert [run(fork, wait).output for fork in forks] == [120] * 2
    results = [run(fork, "y = np.ones(14 << 20); del x; " + wait) for fork in forks]
    snapshot.close()
    # At a cell's end at the latest: between two looks a busy machine may run the whole cell.
    assert "execution.memory_limit_mb" in str([(result.error, result.log) for result in results])
    for fork in forks:
        fork.stop()


def test_what_is_too_large_already_can_be_removed(client: Client) -> None:
    result = run(client, "for n in range(10): open(f'{n}', 'wb').write(b'1' * (4 << 20))")
    assert (result.status, result.is_state_lost) == ("error", False)
    assert "execution.folder_limit_mb" in str(result.error)
    assert run(client, "import os; len([os.remove(n) for n in os.listdir()])").output == 10
    assert run(client, "open('small', 'w').write('1')").status == "ok"


def test_a_cell_that_is_stopped_by_a_bound_was_interrupted_by_no_person(client: Client) -> None:
    run(client, "kept = 7")
    code = (
        "import time\nfor n in range(10):\n"
        "    open(f'{n}', 'wb').write(b'1' * (4 << 20)); time.sleep(0.3)\ntime.sleep(60)"
    )
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("error", False)
    assert "execution.folder_limit_mb allows 24 MiB" in str(result.error)
    assert run(client, "kept").output == 7
