"""Evaluations of a search on Dask workers: two beside one, and beside the pool of this machine.

A scheduler and its workers, of one thread each, are started on loopback. An evaluation is the run
phase of an attempt whose command sleeps 0.2 s and writes its result, so processors are no limit.
Run with ``python -m bench.search_executors``, or with the number of evaluations, like ``1000``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

from distributed import LocalCluster

from bench.common import sized
from taskweaver.ces.command_process import CommandLimits
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.execution.executors.dask_executor import DaskExecutor
from taskweaver.treesearch.execution.executors.local import LocalExecutor
from taskweaver.treesearch.execution.executors.protocol import JobCall, JobExecutor
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.phases import run_job
from taskweaver.treesearch.model.limits import PhaseLimits
from taskweaver.treesearch.model.phase_plan import PhasePlan

EVALUATIONS = sized(60, 2)
WORKERS = sized(2, 1)
"""Number of Dask workers that one is compared with; none where the bench is only tried."""
SLEEP_S = 0.2
SLOTS = 8
COMMAND = f"sleep {SLEEP_S:g}; mkdir -p working; echo '{{\"metric\": 1}}' > working/result.json"
LIMITS = PhaseLimits(60.0, 60.0, 60.0, CommandLimits())
PLAIN = SandboxRequest("none", SandboxPolicy())


def seconds(executor: JobExecutor, folder: Path, count: int) -> float:
    """Return how long so many evaluations take, after one that starts the processes."""
    plan = PhasePlan.from_dict({"run": {"commands": [COMMAND]}})

    def call(number: int) -> JobCall[JobResult]:
        name = f"n{number:04d}"
        places = folder / name, folder / "logs" / name
        job = Job(folder, name, *places, plan, LIMITS, phases=("run",))
        return JobCall(run_job, (job,), f"{name}-run-1")

    for future in [executor.submit(call(-n), 60.0) for n in range(1, 1 + executor.capacity * 2)]:
        future.result()
    since = perf_counter()
    futures = [executor.submit(call(number), 60.0) for number in range(count)]
    results = [future.result() for future in futures]
    took = perf_counter() - since
    assert all(result.error is None for result in results)
    return took


def on_dask(workers: int, count: int) -> float:
    """Return how long evaluations take on so many workers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
    ):
        run = Path(folder) / "run"
        run.mkdir()
        executor = DaskExecutor(cluster.scheduler_address, SLOTS, PLAIN, run)
        try:
            return seconds(executor, run, count)
        finally:
            executor.close()


def run(count: int = EVALUATIONS) -> dict[str, float]:
    """Return seconds and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        local = LocalExecutor(1, PLAIN)  # it has a second slot, for plots
        try:
            here = seconds(local, Path(folder), count)
        finally:
            local.close()
    one = on_dask(1, count)
    two = on_dask(WORKERS, count) if WORKERS > 1 else one
    return {
        "evaluations": count,
        "dask_one": one,
        "workers": WORKERS,
        "dask_two": two,
        "local_two": here,
        "two_to_one": one / two,
        "two_to_local": here / two,
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print(f"{figures['evaluations']:.0f} evaluations that sleep {SLEEP_S:g} s")
    print(f"  one Dask worker         {figures['dask_one']:8.2f} s   (baseline)")
    print(f"  Dask workers: {figures['workers']:.0f}         {figures['dask_two']:8.2f} s")
    print(f"  ratio                   {figures['two_to_one']:8.2f}     goal >= 1.9")
    print(f"  two slots of this host  {figures['local_two']:8.2f} s")
    print(f"  ratio to two on Dask    {figures['two_to_local']:8.2f}")


if __name__ == "__main__":
    show(run(int(sys.argv[1]) if len(sys.argv) > 1 else EVALUATIONS))
