"""Executors: processes of this machine, and Dask with a real scheduler and workers on loopback."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import worker_jobs as jobs
from dask_cluster import Cluster
from worker_signs import appears, sleeping, vanishes

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import ExecutorLost, NotTransferable, PhasePlanError, WorkerLost
from taskweaver.treesearch.execution.executors import dask_executor
from taskweaver.treesearch.execution.executors.dask_executor import DaskExecutor
from taskweaver.treesearch.execution.executors.local import LocalExecutor
from taskweaver.treesearch.execution.executors.protocol import JobCall, JobExecutor, Resources

Open = Callable[..., DaskExecutor]
PLAIN = SandboxRequest("none", SandboxPolicy())


@pytest.fixture(scope="module")
def cluster(
    program: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with Cluster(program) as made:
        for name in ("a", "b"):
            files = tmp_path_factory.mktemp(name)  # their hosts share no lock
            made.add(name, host=f"host-{name}", threads=2, TMPDIR=str(files))
        yield made


@pytest.fixture
def opened(cluster: Cluster, tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def make(run: str = "run", count: int = 4) -> DaskExecutor:
            (tmp_path / run).mkdir(exist_ok=True, parents=True)
            made = DaskExecutor(cluster.address, count, PLAIN, tmp_path / run)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture(params=["local", "dask"])
def executor(request: pytest.FixtureRequest, opened: Open) -> Iterator[JobExecutor]:
    """An executor of each kind."""
    if request.param == "local":
        with closing(LocalExecutor(2, PLAIN)) as made:
            yield made
    else:
        yield opened("stencil")


def test_jobs_run_and_their_errors_come_back(executor: JobExecutor) -> None:
    def begin(function: Any, *args: object) -> Future[Any]:
        return executor.submit(JobCall(function, args, f"n{next(numbers)}"), 0.0)

    numbers = itertools.count()
    assert executor.probe().problem == ""
    futures = [begin(jobs.double, n) for n in range(6)]
    assert [future.result() for future in futures] == [0, 2, 4, 6, 8, 10]
    assert begin(jobs.large, 5_000_000).result() == bytes(5_000_000)
    with pytest.raises(KeyError) as caught:
        begin(jobs.fail_with, "plain").result()
    assert "in fail_with" in "".join(caught.value.__notes__)
    with pytest.raises(PhasePlanError) as refused:
        begin(jobs.fail_with, "plan").result()
    assert refused.value.place == "a.b"
    odd = [begin(jobs.fail_with, kind) for kind in ("unreadable", "unwritable")]
    odd += map(begin, (jobs.unwritable, jobs.Poison, lambda: 1, jobs.leave))
    for future in odd:
        assert isinstance(future.exception(), NotTransferable)
    assert begin(jobs.double, 4).result() == 8
    executor.close()
    with pytest.raises(RuntimeError, match=r"closed|shut down"):
        begin(jobs.double, 1)


def test_what_dies_hangs_or_is_cancelled_ends_with_all_it_started(
    executor: JobExecutor, tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    future = executor.submit(JobCall(jobs.hang, (str(sign), "600.62"), "n0003-run-2"), 0.0)
    appears(sign)
    for marker in tmp_path.glob("stencil/.jobs-stencil-*/n0003-run-2"):  # of Dask's
        assert "host-" in marker.read_text()  # keys name run, node, phase and try
    assert future.running()
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result()
    vanishes("600.62")
    last_words = "(?s)exit status 3.*these are my last words"
    jobs_and_ends = {
        JobCall(jobs.be_killed, (), "killed"): "killed by SIGKILL",
        JobCall(jobs.end_with, (3,), "ended"): last_words,
        JobCall(jobs.hang, (str(tmp_path / "late"), "600.61"), "hung"): "within 2 s",
    }
    lost = [executor.submit(call, 2.0) for call in jobs_and_ends]
    fine = [executor.submit(JobCall(jobs.double, (n,), f"n{n}"), 0.0) for n in range(4)]
    for ended, how in zip(lost, jobs_and_ends.values(), strict=True):
        with pytest.raises(WorkerLost, match=how):
            ended.result()
    assert [each.result() for each in fine] == [0, 2, 4, 6]
    assert sleeping("600.61") == []


def test_full_disk_of_a_dask_worker_is_told(opened: Open) -> None:
    with pytest.raises(WorkerLost, match="cannot write"):
        opened().submit(JobCall(jobs.fill_disk, (), "full"), 0.0).result()


def test_a_dask_worker_that_is_killed_costs_its_job_alone(
    cluster: Cluster, opened: Open, tmp_path: Path
) -> None:
    cluster.add("c", host="host-c", threads=8)
    executor = opened()
    signs = [tmp_path / f"sign{number}" for number in range(3)]
    futures = [
        executor.submit(JobCall(jobs.hang, (str(sign), f"600.64{n}"), f"hang{n}"), 0.0)
        for n, sign in enumerate(signs)
    ]
    for sign in signs:
        appears(sign)
    markers = {path.name: path.read_text() for path in tmp_path.glob("run/.jobs-*/*")}
    cluster.kill("c")
    for number, future in enumerate(futures):
        if "host-c" in markers[f"hang{number}"]:
            with pytest.raises(WorkerLost, match="host-c"):
                future.result()
            vanishes(f"600.64{number}")  # although Dask began the job again elsewhere
        else:
            assert sleeping(f"600.64{number}")
            future.cancel()
    assert any("host-c" in where for where in markers.values())
    assert executor.submit(JobCall(jobs.double, (4,), "next"), 0.0).result() == 8


def test_workers_of_another_kind_are_not_used(cluster: Cluster, opened: Open) -> None:
    cluster.add("odd", host="odd-cpu", cpu="Another CPU", threads=1)
    cluster.add("bare", host="no-compiler", PATH="/nowhere", threads=1)
    try:
        executor = opened()
        assert "gcc" in executor.probe().compilers
        assert executor.capacity == 4
        notes = "\n".join(executor.notes)
        assert "on odd-cpu is not used, as it differs: Another CPU" in notes
        assert "on no-compiler is not used" in notes
        calls = [executor.submit(JobCall(jobs.double, (n,), f"n{n}"), 0.0) for n in range(3)]
        assert [call.result() for call in calls] == [0, 2, 4]
    finally:
        for name in ("odd", "bare"):
            cluster.kill(name)


def test_each_job_has_a_gpu_of_its_own_and_a_group_one_host(cluster: Cluster, opened: Open) -> None:
    for name in ("g", "h"):  # two workers of one host divide its GPUs
        cluster.add(name, host="gpus", threads=8, CUDA_VISIBLE_DEVICES="GPU-0,GPU-1,GPU-2")
    try:
        executor = opened()
        assert executor.probe().gpus == ("GPU-0", "GPU-1", "GPU-2")
        one = Resources(gpus=1)
        calls = [executor.submit(JobCall(jobs.own_gpu, (), f"n{n}"), 0.0, one) for n in range(8)]
        used = {call.result() for call in calls}
        assert {gpu for _, gpu in used} <= {"GPU-0", "GPU-1", "GPU-2"}
        assert len({gpu for _, gpu in used}) == len(used)  # no two workers have the same
        for group in ("n1-1", "n2-1"):
            for phase in range(3):  # one after the other, as the phases of a node
                call = JobCall(jobs.double, (phase,), f"{group}-{phase}")
                host = executor.host_of(group)
                executor.submit(call, 0.0, Resources(group=group)).result()
                assert executor.host_of(group) == (host or executor.host_of(group)) != ""
    finally:
        cluster.kill("g")
        cluster.kill("h")


COORDINATOR = """
import sys, worker_jobs as jobs
from pathlib import Path
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.execution.executors.protocol import JobCall
from taskweaver.treesearch.execution.executors.dask_executor import DaskExecutor
address, run, sign = sys.argv[1:]
request = SandboxRequest("none", SandboxPolicy())
executor = DaskExecutor(address, 1, request, Path(run))
executor.submit(JobCall(jobs.hang, (sign, "600.65"), "n1-run-1"), 0.0).result()
"""


def test_the_jobs_of_a_killed_coordinator_end(
    cluster: Cluster, opened: Open, tmp_path: Path
) -> None:
    run, sign = tmp_path / "run", tmp_path / "sign"
    run.mkdir()
    tests = Path(__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, cluster.address, str(run), str(sign)],
        env=dict(os.environ) | {"PYTHONPATH": f"{tests}{os.pathsep}{tests.parents[1]}"},
    ) as coordinator:
        appears(sign)
        coordinator.send_signal(signal.SIGKILL)
    executor = opened()
    assert sleeping("600.65") == []  # they have ended before the run goes on
    assert executor.submit(JobCall(jobs.double, (4,), "n1-run-1"), 0.0).result() == 8
    executor.close()
    assert [path.name for path in run.iterdir()] == []


def test_without_scheduler_or_workers_it_is_not_opened(
    program: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "_CONNECT_S", 0.5)
    monkeypatch.setattr(dask_executor, "_FIRST_WORKER_S", 0.5)
    before = set(threading.enumerate())
    with pytest.raises(ExecutorLost, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        DaskExecutor("tcp://127.0.0.1:9", 1, PLAIN, tmp_path)
    with pytest.raises(ExecutorLost, match="No Dask scheduler answers at nonsense"):
        DaskExecutor("nonsense://x", 1, PLAIN, tmp_path)
    assert not [thread for thread in threading.enumerate() if thread not in before]
    with Cluster(program) as bare:
        with pytest.raises(ExecutorLost, match="No worker came"):
            DaskExecutor(bare.address, 1, PLAIN, tmp_path)
        bare.add("blind", is_blind=True)
        with pytest.raises(ExecutorLost, match="does not see"):
            DaskExecutor(bare.address, 1, PLAIN, tmp_path)
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "sleep").symlink_to("/bin/sleep")
        bare.add("one", PATH=str(tmp_path / "bin"))
        executor = DaskExecutor(bare.address, 1, PLAIN, tmp_path)
        assert executor.probe().compilers == ()
        sign = tmp_path / "sign"
        running = executor.submit(JobCall(jobs.hang, (str(sign), "600.66"), "hang"), 0.0)
        appears(sign)
        bare.kill("scheduler")  # in the middle
        with pytest.raises(ExecutorLost, match="is lost"):
            running.result()
        with pytest.raises(ExecutorLost, match="is lost"):
            executor.submit(JobCall(jobs.double, (1,), "after"), 0.0).result()
        vanishes("600.66")
        executor.close()  # and at the end


def test_jobs_wait_for_a_worker_that_comes_back(
    program: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "_HOST_GONE_S", 0.5)
    with Cluster(program) as small:
        small.add("one", host="first")
        executor = DaskExecutor(small.address, 1, PLAIN, tmp_path)
        on = Resources(group="n1-1")
        assert executor.submit(JobCall(jobs.double, (1,), "n1-coding-1"), 0.0, on).result() == 2
        small.kill("one")
        gone = executor.submit(JobCall(jobs.double, (1,), "n1-run-1"), 0.0, on)
        with pytest.raises(WorkerLost, match="first, where the attempt began"):
            gone.result()
        waiting = executor.submit(JobCall(jobs.double, (3,), "n2-run-1"), 0.0)
        small.add("two", host="second")
        assert waiting.result() == 6
        monkeypatch.setattr(dask_executor, "_NO_WORKER_S", 0.5)
        small.kill("two")
        with pytest.raises(ExecutorLost, match="has had no worker"):
            executor.submit(JobCall(jobs.double, (3,), "n3-run-1"), 0.0).result()
        executor.close()
