"""Floods of one user: a program that does one thing many times against a server.

Run by `bench.shares`: ``python -m bench.load.flood KIND URL TOKEN TIMES``. The last line has the
number of answers by status, and of those times for which the time did not suffice.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic

import httpx2

API, KERNELS = "/agent/v1/sessions", "/api/v1/sessions"
_SIDE_BY_SIDE = 32
_MOST_S = 90.0
NOT_BEGUN = "not begun"
_LOOP = "n = 0\nfor i in range(10 ** 9): n += i"


class _Flood:
    def __init__(self, url: str, token: str, times: int) -> None:
        self._left, self._ended = times, Event()
        limits = httpx2.Limits(max_connections=400)
        headers = {"X-API-Key": token}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=600, limits=limits)
        self.session = f"{API}/{self.http.post(API, json={}).json()['session_id']}"

    def streams(self, _number: int) -> int:
        with self.http.stream("GET", "/agent/v1/events") as response:
            self._left -= 1
            if not self._left:
                self._ended.set()
            self._ended.wait(60 if response.status_code == 200 else 0)
            return response.status_code

    def requests(self, _number: int) -> int:
        return self.http.get(API).status_code

    def uploads(self, number: int) -> int:
        path = f"{self.session}/files/{number % 100}.bin"
        return self.http.put(path, content=bytes(100_000)).status_code

    def forks(self, number: int) -> int:
        made = self.http.post(f"{self.session}/branches", json={"name": f"fork-{number}"})
        return made.status_code

    def kernels(self, number: int) -> int:
        made = self.http.post(KERNELS, json={"session_id": f"flood-{number}"})
        if made.status_code == 201:
            body = {"exec_id": "one", "code": "1 + 1"}
            return self.http.post(f"{KERNELS}/flood-{number}/execute", json=body).status_code
        return made.status_code

    def cells(self, number: int) -> int:
        body = {"text": _LOOP, "kind": "code", "message_id": f"cell-{number}"}
        made = self.http.post(API, json={})
        if made.status_code != 201:
            return made.status_code
        url = f"{API}/{made.json()['session_id']}/messages"
        return self.http.post(url, json=body).status_code


def main(kind: str, url: str, token: str, times: str) -> None:
    """Do one thing so many times."""
    os.nice(19)  # a user's own machine
    flood = _Flood(url, token, int(times))
    work: Callable[[int], int] = getattr(flood, kind)
    if kind == "forks":
        body = {"text": "kept = list(range(10_000))", "kind": "code", "stream": True}
        flood.http.post(f"{flood.session}/messages", json=body)
    workers = 300 if kind == "streams" else _SIDE_BY_SIDE
    end = monotonic() + _MOST_S

    def once(number: int) -> str:
        return str(work(number)) if monotonic() < end else NOT_BEGUN

    print("begins", flush=True)
    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(once, number) for number in range(int(times))]
        counts = Counter(task.result() for task in tasks)
    print(dict(counts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
