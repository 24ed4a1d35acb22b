"""Questions to sessions side by side: in this process, or over the agent API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from threading import Event
from time import perf_counter

import httpx2

API = "/agent/v1/sessions"


def ask_over_api(http: httpx2.Client, url: str) -> None:
    """Send a message to a session, and read the stream of the answer to its end."""
    with http.stream("POST", f"{url}/messages", json={"text": "hello", "stream": True}) as response:
        lines = list(response.iter_lines())
    assert '"state":"finished"' in lines[-2], lines[-2]


def drive(
    asks: Sequence[Callable[[], object]], each: int, rate: float | None
) -> tuple[float, float]:
    """Ask side by side; return messages a second, and the 99th percentile of the delay in seconds.

    Each session is asked so many times. With a rate, messages are due in even distances, and delays
    count from then.
    """
    pause, delays = Event(), list[float]()
    begin = perf_counter()

    def work(number: int) -> None:
        for turn in range(each):
            due = perf_counter()
            if rate is not None:
                due = begin + (turn * len(asks) + number) / rate
                pause.wait(max(0.0, due - perf_counter()))
            asks[number]()
            delays.append(perf_counter() - due)

    with ThreadPoolExecutor(len(asks)) as pool:
        list(pool.map(work, range(len(asks))))
    took_s = perf_counter() - begin
    return len(delays) / took_s, sorted(delays)[int(len(delays) * 0.99)]


def drive_api(
    url: str, token: str, sessions: int, each: int, rate: float | None
) -> tuple[float, float]:
    """Ask new sessions over the API, each with a connection of its own; return as `drive`."""
    with ExitStack() as stack:
        asks = []
        for _ in range(sessions):
            http = httpx2.Client(base_url=url, headers={"X-API-Key": token}, timeout=100)
            stack.enter_context(http)
            session = f"{API}/{http.post(API, json={}).json()['session_id']}"
            asks.append(partial(ask_over_api, http, session))
            asks[-1]()
        return drive(asks, each, rate)
