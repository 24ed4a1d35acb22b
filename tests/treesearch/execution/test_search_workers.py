"""WorkerPool that die, hang and are cancelled, and do no harm to the others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import worker_jobs as jobs
from patience import PATIENCE_S
from support import has_bwrap
from worker_signs import appears, sleeping, vanishes

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.errors import NotTransferable, PhasePlanError, WorkerLost
from taskweaver.treesearch.execution.executors.local import LocalExecutor
from taskweaver.treesearch.execution.executors.protocol import JobCall
from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool

pytestmark = [pytest.mark.measured]


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    with WorkerPool(2) as made:
        yield made
        made.shutdown(cancel_futures=True)


def test_they_do_what_they_are_told(workers: WorkerPool) -> None:
    assert list(workers.map(jobs.double, range(5))) == [0, 2, 4, 6, 8]
    assert workers.submit(jobs.large, 5_000_000).result() == bytes(5_000_000)
    pids = {workers.submit(jobs.pid).result() for _ in range(6)}
    assert len(pids) <= 2


@pytest.mark.parametrize(
    ("job", "args", "how"),
    [
        (jobs.end_with, (3,), "exit status 3"),
        (jobs.be_killed, (), "killed by SIGKILL"),
    ],
)
def test_one_that_dies_fails_its_own_future_alone(
    workers: WorkerPool, job: object, args: tuple[object, ...], how: str
) -> None:
    futures = [workers.submit(jobs.double, 1), workers.submit(job, *args)]  # type: ignore[arg-type]
    futures += [workers.submit(jobs.double, n) for n in range(4)]
    with pytest.raises(WorkerLost, match=how) as caught:
        futures.pop(1).result()
    if job is jobs.end_with:
        assert "these are my last words" in str(caught.value)
    assert [future.result() for future in futures] == [2, 0, 2, 4, 6]


def test_errors_are_raised_and_what_cannot_travel_is_told(workers: WorkerPool) -> None:
    with pytest.raises(KeyError) as caught:
        workers.submit(jobs.fail_with, "plain").result()
    assert "in fail_with" in "".join(caught.value.__notes__)
    with pytest.raises(PhasePlanError) as refused:
        workers.submit(jobs.fail_with, "plan").result()
    assert refused.value.place == "a.b"
    futures = [
        workers.submit(jobs.fail_with, "unreadable"),
        workers.submit(jobs.fail_with, "unwritable"),
        workers.submit(jobs.unwritable),
        workers.submit(jobs.Poison),
        workers.submit(lambda: 1),
        workers.submit(jobs.leave),
    ]
    for future in futures:
        assert isinstance(future.exception(), NotTransferable)
    assert workers.submit(jobs.double, 4).result() == 8


def test_one_that_hangs_is_lost_with_all_it_started(workers: WorkerPool, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    future = workers.submit(jobs.hang, str(sign), "600.51", deadline_s=2.0)
    with pytest.raises(WorkerLost, match="within 2 s"):
        future.result()
    assert sign.exists()
    assert sleeping("600.51") == []
    assert workers.submit(jobs.double, 4).result() == 8


def test_one_program_at_a_time_has_a_host_alone(tmp_path: Path) -> None:
    """Also of two pools, as two searches have them; waiting is no part of a deadline."""
    first, second = tmp_path / "first", tmp_path / "second"
    with WorkerPool(1) as one, WorkerPool(2) as other:
        holding = one.submit(jobs.hold, str(first), deadline_s=60.0, is_alone=True)
        appears(first)
        waiting = other.submit(jobs.hold, str(second), deadline_s=1.0, is_alone=True)
        given_up = other.submit(jobs.double, 1, deadline_s=60.0, is_alone=True)
        jobs.await_lock()
        given_up.cancel()
        assert not second.exists()
        first.with_suffix(".end").touch()
        assert holding.result()
        appears(second)
        second.with_suffix(".end").touch()
        assert waiting.result()
        assert given_up.cancelled()


def test_what_runs_can_be_cancelled(tmp_path: Path) -> None:
    with WorkerPool(1) as workers:
        sign = tmp_path / "sign"
        future = workers.submit(jobs.hang, str(sign), "600.52")
        behind = workers.submit(jobs.double, 3)
        never = workers.submit(jobs.double, 5)
        appears(sign)
        assert future.running()
        assert never.cancel()
        assert future.cancel()
        assert future.cancelled()
        with pytest.raises(CancelledError):
            future.result()
        done, _ = wait([future])
        assert done == {future}
        assert sleeping("600.52") == []
        assert behind.result() == 6


@pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")
def test_what_runs_in_a_sandbox_ends_too(tmp_path: Path) -> None:
    with WorkerPool(1) as workers:
        sign = tmp_path / "sign"
        future = workers.submit(jobs.hang_in_sandbox, str(sign), str(tmp_path), "600.53")
        appears(sign)
        future.cancel()
        wait([future])
        assert sleeping("600.53") == []
        again = workers.submit(jobs.hang_in_sandbox, str(sign), str(tmp_path), "600.53")
        sign.unlink()
        appears(sign)
        killed = workers.submit(jobs.double, 3)
        owner = next(p for p in psutil.Process().children() if is_worker(p))
        owner.kill()
        assert isinstance(again.exception(), WorkerLost)
        assert sleeping("600.53") == []
        assert killed.result() == 6


def is_worker(process: psutil.Process) -> bool:
    return any("execution.executors.worker_process" in word for word in process.cmdline())


def test_shutting_down_leaves_nothing_behind(tmp_path: Path) -> None:
    workers = WorkerPool(2)
    workers.submit(jobs.leave_a_daemon, "600.54").result()
    sign = tmp_path / "sign"
    running = workers.submit(jobs.hang, str(sign), "600.54")
    waiting = [workers.submit(jobs.hang, str(sign), "600.54") for _ in range(3)]
    appears(sign)
    workers.shutdown(cancel_futures=True)
    assert running.cancelled()
    assert all(future.cancelled() for future in waiting)
    assert sleeping("600.54") == []
    assert not any(is_worker(child) for child in psutil.Process().children())
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(jobs.pid)
    workers.shutdown()


def test_they_and_programs_with_sessions_of_their_own_end_with_a_killed_owner(
    tmp_path: Path,
) -> None:
    sign = tmp_path / "sign"
    code = (
        "import sys, worker_jobs as jobs\n"
        "from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool\n"
        "workers = WorkerPool(1)\n"
        "print(workers.submit(jobs.pid).result(), flush=True)\n"
        "workers.submit(jobs.hang, sys.argv[1], '600.55').result()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(sign)], stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    ) as owner:  # fmt: skip
        assert owner.stdout
        worker = psutil.Process(int(owner.stdout.readline()))
        appears(sign)
        owner.kill()
    vanishes("600.55")
    _, alive = psutil.wait_procs([worker], timeout=PATIENCE_S)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_a_process_without_jobs_ends_and_another_takes_its_place() -> None:
    with WorkerPool(1, idle_s=0.05) as workers:
        first = psutil.Process(workers.submit(jobs.pid).result())
        _, alive = psutil.wait_procs([first], timeout=PATIENCE_S)
        assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
        assert workers.submit(jobs.pid).result() != first.pid


def test_jobs_that_run_at_one_time_have_a_gpu_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    with closing(LocalExecutor(2, SandboxRequest("none", SandboxPolicy()))) as executor:
        calls = [JobCall(jobs.meet, (one, two)), JobCall(jobs.meet, (two, one))]
        futures = [executor.submit(call, 60.0) for call in calls]
        assert {future.result() for future in futures} == {"GPU-a", "GPU-b"}
