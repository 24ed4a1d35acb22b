"""Sessions opened, used, released and deleted in a row over the agent API: what is left of them.

Each runs a cell in a kernel. Processes, file descriptors, threads and memory of the server are
counted after the first tenth, and at the end; the client runs in the same process. Run with
``python -m bench session_churn``.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import httpx2
import psutil

from bench.common import served, sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.server.accounts import Accounts
from taskweaver.server.agents.index import FileIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door

SESSIONS = sized(10_000, 2)
API = "/agent/v1/sessions"


def _live(http: httpx2.Client) -> None:
    """Let a session live from its begin to its end."""
    url = f"{API}/{http.post(API, json={}).json()['session_id']}"
    body = {"text": "sum(range(10))", "kind": "code", "stream": True}
    with http.stream("POST", f"{url}/messages", json=body) as response:
        lines = list(response.iter_lines())
    assert '"state":"finished"' in lines[-2], lines[-2]
    assert http.post(f"{url}/release").status_code == 204
    assert http.delete(url).status_code == 204


def _counts(folder: Path) -> dict[str, float]:
    gc.collect()
    own = psutil.Process()
    return {
        "processes": len(own.children(recursive=True)),
        "descriptors": own.num_fds(),
        "threads": own.num_threads(),
        "memory_mib": own.memory_full_info().uss / 2**20,
        "files": sum(1 for _ in folder.rglob("*")),
    }


def run() -> dict[str, float]:
    """Return what there is after the first tenth and at the end, and milliseconds a session."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        config = {
            "execution.sandbox": "none",
            "execution.zygote": True,
            "llm.api_type": "offline",
            "workspace.workspace_path": str(folder / "work"),
        }
        app = stack.enter_context(TaskWeaverApp(folder, config, trust=True))

        def doors(accounts: Accounts) -> list[Door]:
            return [AgentApi(AgentSessions(app, accounts, folder / "agents", FileIndexes()))]

        url, token = stack.enter_context(served(folder, doors))
        headers = {"X-API-Key": token}
        http = stack.enter_context(httpx2.Client(base_url=url, headers=headers, timeout=100))
        first = max(SESSIONS // 10, 1)
        for _ in range(first):
            _live(http)
        before, since = _counts(folder), perf_counter()
        for _ in range(SESSIONS - first):
            _live(http)
        took_s, after = perf_counter() - since, _counts(folder)
    figures = {f"{name}_before": value for name, value in before.items()}
    figures |= {f"{name}_after": value for name, value in after.items()}
    return figures | {"ms_a_session": took_s / (SESSIONS - first) * 1e3}


def show(figures: Mapping[str, float]) -> None:
    """Print the figures."""
    print(f"{SESSIONS:,} sessions, {figures['ms_a_session']:.0f} ms each")
    print(f"{'':<14}{'after a tenth':>14}{'at the end':>14}   (goal: the same)")
    for name in ("processes", "descriptors", "threads", "files", "memory_mib"):
        before, after = figures[f"{name}_before"], figures[f"{name}_after"]
        print(f"{name:<14}{before:>14,.1f}{after:>14,.1f}")


if __name__ == "__main__":
    show(run())
