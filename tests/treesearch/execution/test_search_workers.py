"""A pool of workers: turns at a host, sandboxes, ends of its processes and of its owner."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import wait
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
from taskweaver.treesearch.errors import WorkerLost
from taskweaver.treesearch.execution.executors.local import LocalExecutor
from taskweaver.treesearch.execution.executors.protocol import JobCall
from taskweaver.treesearch.execution.executors.worker_pool import WorkerPool

pytestmark = [pytest.mark.measured]


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
