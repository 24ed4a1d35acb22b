"""A message over the agent API, beside the same message in process; and the events of a stream.

The model is a function that answers at once. One message at a time: two sessions are asked in
turn, by a client in the same process, whose CPU time is told apart. Many at a time: several
sessions are asked at once, as fast as they answer and at half that rate, in this process and over
the API from a process of its own; their rounds are an answer alone, and then the plan, cell and
answer of `bench.turn`. Run with ``python -m bench.agent_api``.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, thread_time

import httpx2

from bench.common import served, sized
from bench.load.asking import API, ask_over_api, drive
from bench.turn import instant_model
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.llm.types import ChatMessage
from taskweaver.server.accounts import Accounts
from taskweaver.server.agents.index import FileIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door

MESSAGES = sized(200, 3)
READS = sized(20, 1)
SESSIONS, EACH = sized(8, 2), sized(60, 2)


def answer_at_once(_messages: Sequence[ChatMessage]) -> str:
    """Answer, as a model that needs no time."""
    fields = {
        "plan_reasoning": "It is simple.",
        "plan": "1. answer",
        "current_plan_step": "1. answer",
        "stop": "Completed",
        "send_to": "User",
        "message": "here",
    }
    return json.dumps({"response": fields})


class _Asking:
    """A session on the server, and one in this process."""

    def __init__(self, http: httpx2.Client, app: TaskWeaverApp) -> None:
        self._http = http
        self._session = app.get_session()
        self.url = f"{API}/{http.post(API, json={}).json()['session_id']}"

    def in_process(self) -> None:
        """Ask in this process."""
        assert self._session.send_message("hello").state == "finished"

    def api(self) -> None:
        """Ask over the API, and read the stream of the answer to its end."""
        ask_over_api(self._http, self.url)

    def read_events(self) -> int:
        """Read all events of the session; return their number."""
        last = self._http.get(self.url).json()["last_event"]
        with self._http.stream("GET", f"{self.url}/events") as response:
            for line in response.iter_lines():
                if line == f"id: {last}":
                    return int(last)
        raise AssertionError("the stream ended")


def _from_elsewhere(url: str, token: str, rate: float | None) -> tuple[float, float]:
    """Return the figures of `drive_api` in a process of its own."""
    call = f"drive_api({url!r}, {token!r}, {SESSIONS}, {EACH}, {rate!r})"
    program = f"import json; from bench.load.asking import drive_api; print(json.dumps({call}))"
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True
    )
    most, delay_s = json.loads(done.stdout)
    return most, delay_s


def _load(app: TaskWeaverApp, url: str, token: str) -> dict[str, float]:
    """Return throughput in process and over the API, and delays at half of the smaller one."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(app.get_session()) for _ in range(SESSIONS)]
        asks = [partial(session.send_message, "hello") for session in sessions]
        for ask in asks:
            ask()
        most, _ = drive(asks, EACH, None)
        api_most, _ = _from_elsewhere(url, token, None)
        half = min(most, api_most) / 2
        _, delay_s = drive(asks, EACH, half)
        _, api_delay_s = _from_elsewhere(url, token, half)
    return {
        "most_in_process": most,
        "most_api": api_most,
        "half_rate": half,
        "p99_in_process": delay_s,
        "p99_api": api_delay_s,
    }


def _one_by_one(app: TaskWeaverApp, url: str, token: str) -> dict[str, float]:
    """Return medians of wall and CPU seconds of a message, and events a second."""
    headers = {"X-API-Key": token}
    with httpx2.Client(base_url=url, headers=headers, timeout=100) as http:
        asking = _Asking(http, app)
        times: dict[str, list[float]] = {}
        for number in range(-3, MESSAGES):
            for job in (asking.in_process, asking.api):
                wall, cpu, own = perf_counter(), process_time(), thread_time()
                job()
                if number >= 0:
                    label = job.__name__
                    times.setdefault(label, []).append(perf_counter() - wall)
                    times.setdefault(f"{label}_cpu", []).append(process_time() - cpu)
                    times.setdefault(f"{label}_client", []).append(thread_time() - own)
        since = perf_counter()
        events = sum(asking.read_events() for _ in range(READS))
        read_s = perf_counter() - since
    figures = {name: statistics.median(values) for name, values in times.items()}
    del figures["in_process_client"]
    added = figures["api_cpu"] - figures["in_process_cpu"]
    return figures | {
        "added_cpu": added,
        "added_cpu_server": added - figures["api_client"],
        "ratio": figures["api"] / figures["in_process"],
        "events_a_second": events / read_s,
    }


@contextmanager
def _serving(
    model: Callable[[Sequence[ChatMessage]], str],
) -> Iterator[tuple[TaskWeaverApp, str, str]]:
    """Give an application, and address and token of its server."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        config = {"execution.sandbox": "none", "workspace.workspace_path": str(folder / "work")}
        app = stack.enter_context(TaskWeaverApp(folder, config, model=model, trust=True))

        def doors(accounts: Accounts) -> list[Door]:
            return [AgentApi(AgentSessions(app, accounts, folder / "agents", FileIndexes()))]

        url, token = stack.enter_context(served(folder, doors))
        yield app, url, token


def run() -> dict[str, float]:
    """Return the figures of a message and of load; `cell_` begins those of rounds with a cell."""
    with _serving(answer_at_once) as served_app:
        figures = _one_by_one(*served_app) | _load(*served_app)
    with _serving(sized(instant_model, answer_at_once)) as served_app:
        figures |= {f"cell_{name}": value for name, value in _load(*served_app).items()}
    return figures


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    for name in ("in_process", "api"):
        wall, cpu = figures[name] * 1e3, figures[f"{name}_cpu"] * 1e3
        print(f"{name:<12}{wall:>8.2f} ms{cpu:>8.2f} ms of CPU   median of {MESSAGES} messages")
    added, server = figures["added_cpu"] * 1e3, figures["added_cpu_server"] * 1e3
    print(f"added: {added:.2f} ms of CPU, {server:.2f} ms of it in the server (goal: <= 3)")
    _show_load("an answer alone", "", figures)
    _show_load("a plan, a cell and an answer", "cell_", figures)
    print(f"{figures['events_a_second']:,.0f} stored events a second reach one reader")


def _show_load(rounds: str, prefix: str, figures: Mapping[str, float]) -> None:
    most, api_most = figures[f"{prefix}most_in_process"], figures[f"{prefix}most_api"]
    print(
        f"{SESSIONS} sessions at once, {rounds}: {most:.0f} messages a second in process,"
        f" {api_most:.0f} over the API, {api_most / most:.2f} of it (goal: >= 0.85)"
    )
    delay, api_delay = figures[f"{prefix}p99_in_process"] * 1e3, figures[f"{prefix}p99_api"] * 1e3
    print(
        f"p99 at {figures[f'{prefix}half_rate']:.0f} a second: {delay:.0f} ms in process,"
        f" {api_delay - delay:+.0f} ms over the API (goal: <= +15)"
    )


if __name__ == "__main__":
    show(run())
