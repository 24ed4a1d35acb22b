"""A trivial cell over the kernel API, beside the same cell in process.

Both kernels run at once and are asked in turn, over one connection that stays open; the remote
client, which also copies new files both ways, is a third. Run with ``python -m bench.kernel_api``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import httpx2

from bench.common import served, sized
from taskweaver.ces.common import Client
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.remote_kernels import RemoteManager
from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.server.accounts import Accounts
from taskweaver.server.operations import Door

CELLS = sized(300, 3)
SESSION = "/api/v1/sessions/bench"


def run() -> dict[str, float]:
    """Return seconds of a cell: ``in_process``, ``api``, ``remote``; and ratios to the first."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        local = code_execution_service_factory(folder / "local")
        stack.callback(local.clean_up)
        kernels = code_execution_service_factory(folder / "env")
        stack.callback(kernels.clean_up)

        def doors(_: Accounts) -> list[Door]:
            return [KernelApi(kernels, folder / "users")]

        url, token = stack.enter_context(served(folder, doors))
        remote = RemoteManager(url, token, folder / "remote")
        stack.callback(remote.clean_up)
        http = stack.enter_context(
            httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=100)
        )
        http.post("/api/v1/sessions", json={"session_id": "bench"}).raise_for_status()
        clients: list[Client] = [local.get_session_client("a"), remote.get_session_client("b")]

        def ask(number: int) -> None:
            body = {"exec_id": f"e{number}", "code": "1"}
            http.post(f"{SESSION}/execute", json=body).raise_for_status()

        jobs: dict[str, Callable[[int], object]] = {
            "in_process": lambda _: clients[0].execute_code("x", "1"),
            "api": ask,
            "remote": lambda _: clients[1].execute_code("x", "1"),
        }
        times: dict[str, list[float]] = {name: [] for name in jobs}
        for number in range(-3, CELLS):
            for name, job in jobs.items():
                since = perf_counter()
                job(number)
                if number >= 0:
                    times[name].append(perf_counter() - since)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {f"{name}_ratio": medians[name] / medians["in_process"] for name in ("api", "remote")}
    return medians | ratios


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    base = figures["in_process"]
    for name in ("in_process", "api", "remote"):
        value = figures[name]
        print(f"{name:<12}{value * 1e3:>8.2f} ms{value / base:>8.2f}   median of {CELLS} cells")
    print("goal: api <= 2 of in_process")


if __name__ == "__main__":
    show(run())
