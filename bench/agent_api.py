"""A message over the agent API, beside the same message in process; and the events of a stream.

Both sessions are of one application, whose model is a function that answers at once, and are asked
in turn. The client runs in the same process, so that CPU times have its share too. Run with
``python -m bench.agent_api``.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time

import httpx2

from bench.common import served, sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.llm.types import ChatMessage
from taskweaver.server.accounts import Accounts
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door

MESSAGES = sized(200, 3)
READS = sized(20, 1)
API = "/agent/v1/sessions"


def _answer(_messages: Sequence[ChatMessage]) -> str:
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
        body = {"text": "hello", "stream": True}
        with self._http.stream("POST", f"{self.url}/messages", json=body) as response:
            lines = list(response.iter_lines())
        assert '"state":"finished"' in lines[-2], lines[-2]

    def read_events(self) -> int:
        """Read all events of the session; return their number."""
        last = self._http.get(self.url).json()["last_event"]
        with self._http.stream("GET", f"{self.url}/events") as response:
            for line in response.iter_lines():
                if line == f"id: {last}":
                    return int(last)
        raise AssertionError("the stream ended")


def run() -> dict[str, float]:
    """Return medians of wall and CPU seconds of a message, and events a second of a stream."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        config = {"execution.sandbox": "none", "workspace.workspace_path": str(folder / "work")}
        app = stack.enter_context(TaskWeaverApp(folder, config, model=_answer, trust=True))

        def doors(accounts: Accounts) -> list[Door]:
            return [AgentApi(AgentSessions(app, accounts, folder / "agents"))]

        url, token = stack.enter_context(served(folder, doors))
        headers = {"X-API-Key": token}
        http = stack.enter_context(httpx2.Client(base_url=url, headers=headers, timeout=100))
        asking = _Asking(http, app)
        times: dict[str, list[float]] = {}
        for number in range(-3, MESSAGES):
            for job in (asking.in_process, asking.api):
                wall, cpu = perf_counter(), process_time()
                job()
                if number >= 0:
                    label = job.__name__
                    times.setdefault(label, []).append(perf_counter() - wall)
                    times.setdefault(f"{label}_cpu", []).append(process_time() - cpu)
        since = perf_counter()
        events = sum(asking.read_events() for _ in range(READS))
        read_s = perf_counter() - since
    figures = {name: statistics.median(values) for name, values in times.items()}
    return figures | {
        "added_cpu": figures["api_cpu"] - figures["in_process_cpu"],
        "ratio": figures["api"] / figures["in_process"],
        "events_a_second": events / read_s,
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    for name in ("in_process", "api"):
        wall, cpu = figures[name] * 1e3, figures[f"{name}_cpu"] * 1e3
        print(f"{name:<12}{wall:>8.2f} ms{cpu:>8.2f} ms of CPU   median of {MESSAGES} messages")
    print(f"added: {figures['added_cpu'] * 1e3:.2f} ms of CPU, the client's included (goal: <= 3)")
    print(f"{figures['events_a_second']:,.0f} stored events a second reach one reader")


if __name__ == "__main__":
    show(run())
