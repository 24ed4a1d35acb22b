"""How the workers of a Dask scheduler divide the GPUs of their hosts; no cluster runs."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import Client

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.treesearch.execution.executors.probe import WorkerFacts
from taskweaver.treesearch.execution.executors.remote import hosted, roster
from taskweaver.treesearch.execution.executors.remote.roster import Roster

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
