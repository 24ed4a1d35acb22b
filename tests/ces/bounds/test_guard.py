"""The bounds of a session as its owner sees them: idle costs nothing, leftovers are watched."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kernels import LIMITS, answers, run, warmed
from patience import PATIENCE_S

from taskweaver.ces.bounds import cgroup
from taskweaver.ces.common import Manager
from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.kernel.kernel import Kernel

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
def client(manager: Manager, tmp_path: Path) -> Iterator[Kernel]:
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
    threads = {*threading.enumerate()} - before
    new = {thread.name.rpartition("_")[0] or thread.name for thread in threads}
    assert new <= {"kernel-launcher", "idle-output"}  # of all kernels
    assert client.left_behind() == ""
    client.stop()


def test_code_of_a_servers_user_yields(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "owner_of", lambda _folder: "ann")
    client = manager.get_session_client(str(tmp_path), session_dir=tmp_path)
    try:
        niceness = run(client, "import os; os.nice(0)").output
        groups = run(client, "open('/proc/self/cgroup').read()").output
        is_weighed = "cpu" in client.place.guard.group.held
    finally:
        client.stop()
    own, is_in_group = os.nice(0), f"/taskweaver-{os.getpid()}-ann/" in groups
    assert (niceness, is_in_group) == ((own, True) if is_weighed else (own + 5, False))


def test_the_watch_of_leftovers_ends_with_them(client: Kernel) -> None:
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


def test_a_process_that_grows_after_its_cell_is_ended(client: Kernel) -> None:
    code = "import time; time.sleep(1); x = b'1' * (450 << 20); time.sleep(60)"
    run(client, f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}])")
    assert client.left_behind() == "1 process that cells started still runs: python."
    wait_for_the_watch()
    assert client.left_behind() == ""
    result = run(client, "20 + 1")
    assert result.output == 21
    assert "execution.memory_limit_mb" in str(result.log)


def test_a_log_that_grows_after_its_cell_is_cut(client: Kernel, tmp_path: Path) -> None:
    flood = "'sleep 1; head -c 5000000 /dev/zero; sleep 60', shell=True"
    log = "sys.stdout._original_stdstream_copy"
    run(client, f"import subprocess, sys\nsubprocess.Popen({flood}, stdout={log})")
    wait_for_the_watch()
    assert client.left_behind() == ""
    assert (tmp_path / "kernel.log").stat().st_size <= 1 << 20
    assert "execution.log_limit_mb" in str(run(client, "1").log)


def test_forks_and_snapshots_share_the_bound_and_count_shared_pages_once(
    manager: Manager, client: Kernel, tmp_path: Path
) -> None:
    run(client, "x = np.ones(15 << 20); size = x.nbytes")
    snapshot = client.snapshot()
    forks = [
        snapshot.fork(f"{tmp_path} {name}", session_dir=tmp_path, cwd=tmp_path / name)
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


def test_a_cell_that_is_stopped_by_a_bound_keeps_the_variables_and_a_later_one_can_remove_files(
    client: Kernel,
) -> None:
    run(client, "kept = 7")
    for pause_s in (0, 0.3):  # at its end, and while it runs
        code = (
            "import os, time\nfor n in range(10):\n"
            f"    open(f'{{n}}', 'wb').write(b'1' * (4 << 20)); time.sleep({pause_s})\n"
            f"time.sleep({200 * pause_s})"
        )
        result = run(client, code)
        assert (result.status, result.is_state_lost) == ("error", False)
        assert "execution.folder_limit_mb allows 24 MiB" in str(result.error)
        assert run(client, "len([os.remove(n) for n in os.listdir()])").output > 5
    assert run(client, "open('small', 'w').write('1'); kept").output == 7


def test_a_kernel_beyond_the_limit_of_processes_is_refused_at_once(tmp_path: Path) -> None:
    with warmed(tmp_path / "env", replace(LIMITS, process_limit=40)) as manager:
        client = manager.get_session_client("main", session_dir=tmp_path)
        assert run(client, "x = 6 * 7").status == "ok"
        snapshot = client.snapshot()
        with (
            closing(snapshot),
            pytest.raises(KernelStartFailed, match=r"execution\.process_limit allows 40"),
        ):
            [snapshot.fork(str(n), tmp_path, tmp_path / str(n)) for n in range(8)]
        assert run(client, "x").output == 42
