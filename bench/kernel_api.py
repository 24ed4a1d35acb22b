"""A trivial cell over the kernel API, beside the same cell in process.

Both kernels run at once and are asked in turn, over one connection that stays open; the remote
client, which also keeps the files alike, is a third. Run with ``python -m bench.kernel_api``.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

import httpx2

from bench.common import sized
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.remote.manager import RemoteManager
from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.accounts import Accounts
from taskweaver.server.gate import Gate
from taskweaver.server.serving import Server, address_of, listen, make_application
from taskweaver.server.tokens import new_token

CELLS = sized(300, 3)
SESSION = "/api/v1/sessions/bench"


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, str]]:
    """Give address and token of a server in a thread of this process."""
    kernels = code_execution_service_factory(folder / "env")
    is_up, token = threading.Event(), new_token()
    with ExitStack() as stack:
        stack.callback(kernels.clean_up)
        accounts = stack.enter_context(Accounts(folder / "accounts.sqlite"))
        log = stack.enter_context(TelemetryLogger())
        listener = stack.enter_context(listen("127.0.0.1", 0))
        doors = [KernelApi(kernels, folder / "users")]
        app = make_application(doors, Gate(accounts, token, log), (), log)
        server = Server(app, doors, is_up.set)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        is_up.wait()
        try:
            yield address_of(listener), token.text
        finally:
            server.should_exit = True
            thread.join()


def run() -> dict[str, float]:
    """Return seconds of a cell: ``in_process``, ``api``, ``remote``; and ratios to the first."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        local = code_execution_service_factory(folder / "local")
        stack.callback(local.clean_up)
        url, token = stack.enter_context(_served(folder))
        remote = RemoteManager(url, token, folder / "remote")
        stack.callback(remote.clean_up)
        http = stack.enter_context(
            httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=100)
        )
        http.post("/api/v1/sessions", json={"session_id": "bench"}).raise_for_status()
        clients = [local.get_session_client("a"), remote.get_session_client("b")]

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
