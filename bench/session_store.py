"""Sessions on disk: what writing a post costs, and opening a session of 200 rounds again.

The baseline is one INSERT and COMMIT with the same durability through `sqlite3` alone. Run with
``python -m bench.session_store``.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from bench.common import sized
from bench.memory_view import post
from taskweaver.memory.branched import MemoryConfig
from taskweaver.session.storage.layout import CHAT
from taskweaver.session.storage.store import SessionFiles

ROUNDS, POSTS_PER_ROUND, REPEATS = sized((200, 6, 15), (3, 2, 2))
COMMITS = sized(300, 3)
QUIET = MemoryConfig(memory_log_enabled=False)


def run() -> dict[str, float]:
    """Return medians in seconds: ``post``, ``resume_200_rounds``, ``bare_commit``; and a ratio."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        posts = _write(place)
        resumes = []
        for _ in range(REPEATS):
            since = perf_counter()
            files = SessionFiles("s", place / "s", QUIET)
            memory = files.memory(CHAT.root)
            resumes.append(perf_counter() - since)
            assert len(memory.conversation.rounds) == ROUNDS
            files.close()
        bare = _bare_commit(place)
    return {
        "post": statistics.median(posts),
        "resume_200_rounds": statistics.median(resumes),
        "bare_commit": bare,
        "post_ratio": statistics.median(posts) / bare,
    }


def _write(place: Path) -> list[float]:
    files = SessionFiles("s", place / "s", QUIET)
    memory = files.memory(CHAT.root)
    times = []
    for number in range(ROUNDS):
        round_ = memory.create_round(f"question {number}")
        for turn in range(POSTS_PER_ROUND):
            new = post(turn)
            since = perf_counter()
            memory.add_post(round_, new)
            times.append(perf_counter() - since)
        memory.end_round(round_, "finished")
    files.close()
    return times


def _bare_commit(place: Path) -> float:
    connection = sqlite3.connect(place / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    times = []
    for _ in range(COMMITS):
        since = perf_counter()
        connection.execute("INSERT INTO t (text) VALUES (?)", ("a message of some length " * 60,))
        times.append(perf_counter() - since)
    connection.close()
    return statistics.median(times)


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print(f"a post written to disk     {figures['post'] * 1e3:7.2f} ms  goal <= 1 ms")
    print(f"  of a bare commit         {figures['post_ratio']:7.2f}")
    print(
        f"a session of 200 rounds    {figures['resume_200_rounds'] * 1e3:7.1f} ms  goal <= 500 ms"
    )


if __name__ == "__main__":
    show(run())
