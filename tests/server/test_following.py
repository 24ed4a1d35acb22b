"""Readers of event streams, woken from other threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from taskweaver.server.agents import following
from taskweaver.server.agents.following import Alarm, StreamEnd, StreamReaders
from taskweaver.server.databases.statements import DatabaseLost, LoopCalls

_WRITERS, _EACH = 4, 500


@dataclass(frozen=True, slots=True)
class Piece:
    number: int
    kind: str = "piece"
    data: str = "{}"


class Pieces:
    """A source of events, and of the end of a stream."""

    def __init__(self) -> None:
        self.all: list[Piece] = []
        self.listeners: list[Callable[[], None]] = []

    def add(self) -> None:
        self.all.append(Piece(len(self.all) + 1))
        self.call()

    def call(self) -> None:
        for listener in tuple(self.listeners):
            listener()

    def read(self, after: int, limit: int) -> list[Piece]:
        return self.all[after : after + limit]

    def listen(self, on_event: Callable[[], None]) -> None:
        self.listeners.append(on_event)

    def unlisten(self, on_event: Callable[[], None]) -> None:
        self.listeners.remove(on_event)


pytestmark = pytest.mark.anyio


async def test_no_ring_of_many_threads_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_KEEP_ALIVE_S", 1000.0)  # a wait ends by a ring alone
    alarm, added, found = Alarm(), deque[int](), 0

    def write() -> None:
        for number in range(_EACH):
            added.append(number)
            (alarm.ring if number % 7 else alarm.ring_at_once)()

    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in range(_WRITERS):
            pool.submit(write)
        async with asyncio.timeout(60):
            while found < _WRITERS * _EACH:
                alarm.reset()
                new = len(added)
                for _ in range(new):
                    added.popleft()
                found += new
                if new and found % 2:
                    await alarm.pause()
                elif not new:
                    await alarm.wait()
    assert found == _WRITERS * _EACH


async def test_an_event_that_comes_as_the_end_is_looked_at_is_not_missed() -> None:
    pieces, outcome, looks = Pieces(), Pieces(), list[int]()

    def is_ended() -> bool:
        looks.append(len(looks))
        if len(looks) == 2:  # as the answering thread does it: the last event, then the end
            pieces.add()
            outcome.add()
        return bool(outcome.all)

    reader = StreamReaders().follow({"": pieces}, {"": 0}, StreamEnd(is_ended, outcome))
    asyncio.get_running_loop().call_soon(outcome.call)  # to look a second time
    numbers = [event.number async for events in reader for _, event in events]
    assert numbers == [1]


async def test_what_a_later_source_tells_waits_for_the_events_before_it() -> None:
    log, index = Pieces(), Pieces()
    for _ in range(300):
        log.add()
    index.add()
    read = log.read

    def read_and_end(after: int, limit: int) -> list[Piece]:
        found = read(after, limit)
        if len(index.all) == 1 and after:  # more happens while the log is read
            log.add()
            index.add()
        return found

    log.read = read_and_end  # type: ignore[method-assign]
    readers, found = StreamReaders(), list[tuple[str, int]]()
    async for events in readers.follow({"log": log, "index": index}, {"log": 0, "index": 0}):
        found += [(name, event.number) for name, event in events]
        if len(found) == 303:
            readers.stop()
    assert [one for one in found if one[0] == "index"] == [("index", 1), ("index", 2)]
    assert found.index(("index", 1)) > found.index(("log", 300))
    assert found.index(("index", 2)) > found.index(("log", 301))


async def test_a_database_is_read_in_a_thread_and_when_it_changed() -> None:
    log, index, reads, found = Pieces(), Pieces(), list[str](), list[tuple[str, int]]()
    read = index.read

    def read_in_database(after: int, limit: int) -> list[Piece]:
        reads.append(threading.current_thread().name)
        return read(after, limit)

    index.read = read_in_database  # type: ignore[method-assign]
    log.add()
    with ThreadPoolExecutor(1, thread_name_prefix="database") as threads:
        readers, calls = StreamReaders(), LoopCalls(database_with(threads))
        sources, positions = {"log": log, "index": index}, {"log": 0, "index": 0}
        async for events in readers.follow(sources, positions, calls=calls):
            found.extend((name, event.number) for name, event in events)
            if len(log.all) < 20:
                log.add()
            elif not index.all:
                assert len(reads) == 1
                index.add()
            else:
                readers.stop()
    assert found == [*(("log", number) for number in range(1, 21)), ("index", 1)]
    assert reads == ["database_0"] * 2


def database_with(threads: ThreadPoolExecutor | None) -> Any:
    return SimpleNamespace(threads=threads)


async def test_a_stream_goes_on_while_its_database_is_away() -> None:
    log, index, found = Pieces(), Pieces(), list[str]()
    read, is_away = index.read, True

    def read_in_database(after: int, limit: int) -> list[Piece]:
        if is_away:
            raise DatabaseLost("It is away.", is_undone=True)
        return read(after, limit)

    index.read = read_in_database  # type: ignore[method-assign]
    log.add()
    readers, calls = StreamReaders(), LoopCalls(database_with(None))
    sources, positions = {"log": log, "index": index}, {"log": 0, "index": 0}
    async for events in readers.follow(sources, positions, calls=calls):
        found.extend(name for name, _ in events)
        if found == ["log"]:
            log.add()
            index.add()
        elif found == ["log", "log"]:
            is_away = False
            index.call()
        else:
            readers.stop()
    assert found == ["log", "log", "index"]


def test_a_ring_after_the_end_of_the_loop_disturbs_nobody() -> None:
    async def alarm() -> Alarm:
        return Alarm()

    asyncio.run(alarm()).ring_at_once()
