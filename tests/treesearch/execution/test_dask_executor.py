"""The Dask executor with a real scheduler and worker processes on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import worker_jobs as jobs
from dask_cluster import Cluster
from distributed import Client
from worker_signs import appears, sleeping, vanishes

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import ExecutorLost, NotTransferable, PhasePlanError, WorkerLost
from taskweaver.treesearch.execution.executors.probe import WorkerFacts
from taskweaver.treesearch.execution.executors.protocol import JobCall, Resources
from taskweaver.treesearch.execution.executors.remote import dask_executor, hosted, roster
from taskweaver.treesearch.execution.executors.remote.dask_executor import DaskExecutor
from taskweaver.treesearch.execution.executors.remote.roster import Roster

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


def test_jobs_run_and_their_errors_come_back(opened: Open) -> None:
    executor = opened()
    assert executor.capacity == 4
    assert executor.probe().problem == ""
    futures = [executor.submit(JobCall(jobs.double, (n,), f"n{n}"), 0.0) for n in range(6)]
    assert [future.result() for future in futures] == [0, 2, 4, 6, 8, 10]
    with pytest.raises(PhasePlanError) as refused:
        executor.submit(JobCall(jobs.fail_with, ("plan",), "error"), 0.0).result()
    assert refused.value.place == "a.b"
    for number, call in enumerate((jobs.unwritable, lambda: 1)):
        failed = executor.submit(JobCall(call, (), f"odd{number}"), 0.0)
        assert isinstance(failed.exception(), NotTransferable)
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        executor.submit(JobCall(jobs.double, (1,), "late"), 0.0)


def test_what_dies_hangs_or_is_cancelled_ends_with_all_it_started(
    opened: Open, tmp_path: Path
) -> None:
    executor = opened("stencil")
    sign = tmp_path / "sign"
    future = executor.submit(JobCall(jobs.hang, (str(sign), "600.62"), "n0003-run-2"), 0.0)
    appears(sign)
    (marker,) = (tmp_path / "stencil").glob(".jobs-stencil-*/n0003-run-2")
    assert "host-" in marker.read_text()  # keys name run, node, phase and try
    assert json.dumps(executor.notes)
    assert future.running()
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result()
    vanishes("600.62")
    killed = executor.submit(JobCall(jobs.be_killed, (), "killed"), 0.0)
    hung = executor.submit(JobCall(jobs.hang, (str(tmp_path / "late"), "600.61"), "hung"), 2.0)
    full = executor.submit(JobCall(jobs.fill_disk, (), "full"), 0.0)
    for lost, how in ((killed, "killed by SIGKILL"), (hung, "within 2 s"), (full, "cannot write")):
        with pytest.raises(WorkerLost, match=how):
            lost.result()
    assert sleeping("600.61") == []
    assert executor.submit(JobCall(jobs.double, (4,), "next"), 0.0).result() == 8


def test_jobs_of_a_group_stay_on_one_host(opened: Open) -> None:
    executor = opened()
    for group in ("n1-1", "n2-1", "n3-1", "n4-1"):
        on = Resources(group=group)
        pools = set()
        for number in range(3):  # one after the other, as the phases of a node
            futures = [executor.submit(JobCall(jobs.pool, (), f"{group}-{number}"), 0.0, on)]
            futures += [executor.submit(JobCall(jobs.pool, (), f"x{group}-{number}"), 0.0)]
            pools.add(futures[0].result())
            futures[1].result()
        assert len(pools) == 1


def test_a_dask_worker_that_is_killed_costs_its_job_alone(
    cluster: Cluster, opened: Open, tmp_path: Path
) -> None:
    cluster.add("c", host="host-c", threads=8)
    executor = opened()
    signs = [tmp_path / f"sign{number}" for number in range(3)]
    calls = [
        JobCall(jobs.hang, (str(sign), f"600.64{number}"), f"hang{number}")
        for number, sign in enumerate(signs)
    ]
    futures = [executor.submit(call, 0.0) for call in calls]
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


COORDINATOR = """
import sys, worker_jobs as jobs
from pathlib import Path
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.execution.executors.protocol import JobCall
from taskweaver.treesearch.execution.executors.remote.dask_executor import DaskExecutor
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


CARDS = {"twin": ("GPU-0", "GPU-1", "GPU-2"), "alone": ("GPU-7", "GPU-8")}
REQUEST = SandboxRequest("none", SandboxPolicy())


class Scheduler:
    """A scheduler to a client of it, with workers that are told apart by the name of their host.

    Attributes:
        resources: What each worker has declared, by its address.
    """

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, float]] = {}

    def add(self, *addresses: str) -> None:
        """Let workers come: an address is ``HOST/NUMBER``."""
        self.resources |= {address: {} for address in addresses}

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": dict.fromkeys(self.resources)}

    def run(self, function: Any, *args: Any, workers: list[str], **_: Any) -> dict[str, Any]:
        """Run a function on workers, as Dask does in their processes."""
        return {
            address: asyncio.run(function(*args, dask_worker=self._worker(address)))
            for address in workers
        }

    def _worker(self, address: str) -> SimpleNamespace:
        declared = self.resources[address]

        async def declare(**resources: float) -> None:
            declared.update(resources)

        state = SimpleNamespace(nthreads=1, total_resources=declared)
        return SimpleNamespace(address=address, state=state, set_resources=declare)

    @property
    def gpus(self) -> dict[str, tuple[str, ...] | None]:
        """The GPUs of each worker."""
        return {
            address: hosted._pools(cast(Any, self._worker(address))).gpus
            for address in self.resources
        }


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    def probe(_: SandboxRequest, __: Path, address: str = "") -> WorkerFacts:
        host = address.partition("/")[0]
        return WorkerFacts(host, {}, CARDS[host], 1, None)

    async def probe_worker(*args: Any, dask_worker: Any) -> hosted.HostedFacts:
        with monkeypatch.context() as patch:
            patch.setattr(hosted, "probe_machine", partial(probe, address=dask_worker.address))
            return await hosted.probe_worker(*args, dask_worker=dask_worker)

    monkeypatch.setattr(roster, "probe_worker", probe_worker)
    monkeypatch.setattr(roster, "_AGE_S", -1.0)
    monkeypatch.setattr(hosted, "_POOLS", {})
    return Scheduler()


def test_the_workers_of_a_host_divide_its_gpus(scheduler: Scheduler, tmp_path: Path) -> None:
    scheduler.add("twin/1", "twin/2", "alone/1")
    Roster(cast(Client, scheduler), REQUEST, tmp_path).choose_kind()
    assert scheduler.gpus == {
        "twin/1": ("GPU-0", "GPU-2"), "twin/2": ("GPU-1",), "alone/1": CARDS["alone"],
    }  # fmt: skip
    assert scheduler.resources == {
        "twin/1": {"GPU": 2}, "twin/2": {"GPU": 1}, "alone/1": {"GPU": 2},
    }  # fmt: skip


def test_gpus_that_a_worker_has_stay_its_own(scheduler: Scheduler, tmp_path: Path) -> None:
    scheduler.add("alone/1")
    scheduler.resources["alone/1"]["GPU"] = 1  # it declares them itself
    first = Roster(cast(Client, scheduler), REQUEST, tmp_path)
    first.choose_kind()
    scheduler.add("alone/2")
    assert first.addresses() == ["alone/1", "alone/2"]
    Roster(cast(Client, scheduler), REQUEST, tmp_path).choose_kind()  # that of another run
    assert scheduler.gpus == {"alone/1": CARDS["alone"], "alone/2": ()}
    assert scheduler.resources == {"alone/1": {"GPU": 1}, "alone/2": {"GPU": 0}}
