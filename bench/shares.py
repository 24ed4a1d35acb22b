"""The latency of one user while another does each thing many times.

A server with two users, in a process of its own, is flooded by one of them from a further process.
The other asks for the list of sessions, has a small cell run, and opens an event stream, before and
during each flood: the ratio is the result. Run with ``python -m bench shares``.
"""

from __future__ import annotations

import ast
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import perf_counter

import httpx2

from bench.common import sized
from bench.load.flood import API, NOT_BEGUN
from taskweaver.server.accounts import Accounts, accounts_file
from taskweaver.server.admission import Quota

KINDS = ("streams", "requests", "uploads", "forks", "kernels", "cells")
TIMES, SAMPLES = sized((5000, 30), (3, 1))
_WORK = ("list", "cell", "stream")


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Give the address of a server, and the tokens of its two users."""
    config = {"llm.api_type": "offline"}
    (folder / "taskweaver_config.json").write_text(json.dumps(config))
    with closing(Accounts.at(accounts_file(folder / "workspace"))) as accounts:
        quotas = (Quota(kernels=8, disk_mb=200), Quota())
        tokens = [accounts.add(f"user{n}", quota=quota).text for n, quota in enumerate(quotas)]
    command = [sys.executable, "-m", "taskweaver", "-p", str(folder), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            lines = (re.search(r"http://[\w.]+:\d+", line) for line in server.stdout)
            yield next(match[0] for match in lines if match), tokens
        finally:
            server.send_signal(signal.SIGINT)


class _Other:
    """The user whose latency counts."""

    def __init__(self, url: str, token: str) -> None:
        self.http = httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=600)
        self.times: dict[str, list[float]] = {}
        self.refused = 0
        self._session = f"{API}/{self.http.post(API, json={}).json()['session_id']}"
        self.cell()

    def list(self) -> int:
        """Ask for the sessions."""
        return self.http.get(API).status_code

    def cell(self) -> int:
        """Have a cell run."""
        body = {"text": "1 + 1", "kind": "code", "stream": True}
        with self.http.stream("POST", f"{self._session}/messages", json=body) as response:
            said = response.read()
        assert response.status_code != 200 or b'"state":"finished"' in said, said
        return response.status_code

    def stream(self) -> int:
        """Open an event stream, and read the first event."""
        with self.http.stream("GET", "/agent/v1/events") as response:
            next(response.iter_lines(), "")
            return response.status_code

    def sample(self, flood: str) -> None:
        """Do each thing once."""
        for name in _WORK:
            begin = perf_counter()
            status = getattr(self, name)()
            self.times.setdefault(f"{flood}_{name}", []).append(perf_counter() - begin)
            self.refused += status >= 400


def _flooded(other: _Other, kind: str, url: str, token: str) -> Counter[str]:
    """Sample while the flood of a kind runs, and return the number of its answers by status."""
    command = [sys.executable, "-m", "bench.load.flood", kind, url, token, str(TIMES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as flood:
        assert flood.stdout is not None
        flood.stdout.readline()
        for _ in range(SAMPLES):
            other.sample(kind)
        counts: dict[str, int] = ast.literal_eval(flood.stdout.read() or "{}")
    return Counter(counts)


def run() -> dict[str, float]:
    """Return medians of seconds without a flood and in it, and what was refused to whom."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        url, (first, second) = stack.enter_context(_server(Path(name)))
        other = _Other(url, second)
        for kind in KINDS:
            for _ in range(SAMPLES):
                other.sample(f"before_{kind}")
            counts = _flooded(other, kind, url, first)
            print(f"{kind}: {dict(counts)}", file=sys.stderr, flush=True)
            figures[f"{kind}_done"] = sum(n for status, n in counts.items() if status < "400")
            figures[f"{kind}_refused"] = counts["429"]
            failed = (n for status, n in counts.items() if NOT_BEGUN > status >= "500")
            figures[f"{kind}_failed"] = sum(failed)
        figures["refused_to_other"] = other.refused
        medians = {f"{name}_s": statistics.median(all_) for name, all_ in other.times.items()}
        return figures | medians


def show(figures: Mapping[str, float]) -> None:
    """Print the figures."""
    print(
        f"{'flood':<10}{'done':>7}{'refused':>9}{'failed':>8}"
        + "".join(f"{name:>20}" for name in _WORK)
    )
    for kind in KINDS:
        row = f"{kind:<10}{figures[f'{kind}_done']:>7,.0f}{figures[f'{kind}_refused']:>9,.0f}"
        row += f"{figures[f'{kind}_failed']:>8,.0f}"
        for name in _WORK:
            before, during = figures[f"before_{kind}_{name}_s"], figures[f"{kind}_{name}_s"]
            row += f"{before * 1e3:>7.0f} ms {during / before:>7.2f}x"
        print(row)
    refused = figures["refused_to_other"]
    print(f"refused to the other user: {refused:.0f} (goals: 0; 1.5x, cells that compute aside)")


if __name__ == "__main__":
    show(run())
