"""The branched memory beside bare SQLite: forks, appends, chains, rendering, search, opening.

Baselines of the same run: an INSERT and COMMIT with the same durability through `sqlite3`
alone, and for search a plain FTS5 query over the same texts. Run with
``python -m bench.branched_memory``.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time

from bench.common import sized
from taskweaver.memory.branched import MemoryConfig, MemoryManager

QUIET = MemoryConfig(memory_log_enabled=False)
REPEATS = sized(200, 2)
DEPTHS = sized((10, 1000), (1, 3))
RECORDS, SEARCHED = sized(10_000, 30), sized(100_000, 50)
READS = sized(3000, 10)
WORDS = "solver matrix thread cache buffer kernel compile linker error metric loss batch".split()


def run() -> dict[str, float]:
    """Return medians in seconds and ratios to the baselines; goals stand in docs/memory.md."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return {
            **_bare(place),
            **_depths(place),
            **_chain(place),
            **_full(place),
            **_search(place),
            **_opening(place),
            **_logging(place),
        }


def median(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median time of an action, in seconds."""
    times = []
    for _ in range(repeats):
        since = perf_counter()
        action()
        times.append(perf_counter() - since)
    return statistics.median(times)


def _bare_commit(place: Path) -> float:
    """Return what one INSERT and COMMIT costs at the same durability."""
    connection = sqlite3.connect(place / f"bare{random.random()}.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t (text) VALUES ('a text of some length')")
        connection.execute("COMMIT")

    taken = median(insert)
    connection.close()
    return taken


def _bare(place: Path) -> dict[str, float]:
    return {"bare_commit": _bare_commit(place)}


def _depths(place: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    with MemoryManager(place / "depth.sqlite", QUIET) as memory:
        name = memory.create_branch(None, branch_id="d0")
        for depth in range(1, DEPTHS[1] + 1):
            name = memory.fork(name, f"d{depth}")
            if depth not in DEPTHS:
                continue
            base, branch = _bare_commit(place), name
            numbers = iter(range(1_000_000))
            fork = median(lambda: memory.fork(branch, f"{branch}-{next(numbers)}"))  # noqa: B023
            append = median(lambda: memory.write_event(branch, "k", f"said {next(numbers)}"))  # noqa: B023
            figures[f"fork_{depth}"] = fork
            figures[f"fork_{depth}_ratio"] = fork / base
            figures[f"append_{depth}"] = append
            name = memory.fork(branch, f"{branch}-fresh")
        few, many = DEPTHS
        ratio = figures[f"append_{many}"] / figures[f"append_{few}"]
        figures[f"append_ratio_{many}_to_{few}"] = ratio
    with MemoryManager(place / "empty.sqlite", QUIET) as memory:
        name = memory.create_branch(None, branch_id="d0")
        for depth in range(1, DEPTHS[1] + 1):
            name = memory.fork(name, f"d{depth}")
        figures[f"render_empty_depth_{DEPTHS[1]}"] = median(lambda: memory.render_for_prompt(name))
    return figures


def _chain(place: Path) -> dict[str, float]:
    path = place / "chain.sqlite"
    since = perf_counter()
    with MemoryManager(path, QUIET) as memory:
        name = memory.create_branch(None, branch_id="c0")
        for level in range(DEPTHS[1]):
            name = memory.fork(name, f"c{level + 1}")
            for n in range(3):
                memory.write_event(name, "step", f"event {n} of level {level}")
    taken = perf_counter() - since
    bare = sqlite3.connect(place / "bare_chain.sqlite", isolation_level=None)
    bare.execute("PRAGMA journal_mode = WAL")
    bare.execute("PRAGMA synchronous = FULL")
    bare.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    since = perf_counter()
    for n in range(4 * DEPTHS[1]):
        bare.execute("INSERT INTO t (text) VALUES (?)", (f"event {n} of a level",))
    base = perf_counter() - since
    bare.close()
    return {
        "chain_1000": taken,
        "chain_1000_ratio": taken / base,
        "chain_1000_bytes": float(path.stat().st_size),
    }


def _text(rng: random.Random, n: int) -> str:
    return f"record {n}: " + " ".join(rng.choices(WORDS, k=20)) + f" id{n % 977}"


def _full(place: Path) -> dict[str, float]:
    rng = random.Random(0)
    config = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")
    with MemoryManager(place / "full.sqlite", config) as memory:
        name = memory.create_branch(None, branch_id="f0")
        for n in range(RECORDS):
            if n % (RECORDS // 10) == RECORDS // 10 - 1:
                name = memory.fork(name, f"f{n}")
            memory.write_event(name, "step", f"event {n}")
            memory.write_archival(name, _text(rng, n))
            if n < 20:
                memory.set_core(name, f"key{n}", "a value")
        task = "the linker error in the solver kernel"
        return {
            "render_10k": median(lambda: memory.render_for_prompt(name, "draft", task=task)),
            "pressure_10k": median(lambda: memory.check_memory_pressure(name)),
        }


def _search(place: Path) -> dict[str, float]:
    rng = random.Random(1)
    path = place / "search.sqlite"
    config = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")
    with MemoryManager(path, config) as memory:
        memory.create_branch(None, branch_id="s0")
        names = [memory.fork("s0", f"s{n}") for n in range(1, 6)]
        database = memory._parts.database  # noqa: SLF001 - 100,000 commits are not what is measured
        archival = memory._parts.archival  # noqa: SLF001
        for start in range(0, SEARCHED, SEARCHED // 20):

            def fill(writer: object, start: int = start) -> None:
                for n in range(start, start + SEARCHED // 20):
                    archival.add(writer, names[n % 5], _text(rng, n))  # type: ignore[arg-type]

            database.write(fill)
        queries = {
            "rare": "id421",
            "common": "solver matrix thread",
            "mixed": "the id421 error in the solver",
            "hostile": 'it\'s "quoted" AND (NEAR',
            "empty": "",
            "none": "zebra",
        }
        figures = {
            f"search_100k_{name}": median(
                partial(memory.mem_archival_search, query, k=10, branch_id="s1"), min(30, REPEATS)
            )
            for name, query in queries.items()
        }
        plain = database.reading
        base = median(
            lambda: plain.execute(
                "SELECT rowid FROM archival_fts WHERE archival_fts MATCH 'solver OR matrix'"
                " ORDER BY bm25(archival_fts) LIMIT 10"
            ).fetchall(),
            min(5, REPEATS),
        )
    slowest = max(figures.values())
    return {**figures, "plain_bm25_100k": base, "search_slowest_ratio": slowest / base}


def _opening(place: Path) -> dict[str, float]:
    path = place / "chain.sqlite"

    def open_and_render() -> None:
        with MemoryManager(path, QUIET) as memory:
            memory.render_for_prompt(f"c{DEPTHS[1]}")

    return {"open_and_render_1000": median(open_and_render, min(20, REPEATS))}


def _logging(place: Path) -> dict[str, float]:
    """Return the cost of logs beside the cheapest operation, a core read, and beside an append.

    Both are processor time of the calling thread, without the waits for the disk.
    """
    reads, appends = {}, {}
    for is_on in (False, True):
        config = MemoryConfig(memory_log_enabled=is_on, log_dir=place / "logs")
        with MemoryManager(place / f"log{is_on}.sqlite", config) as memory:
            memory.create_branch(None, branch_id="r")
            memory.set_core("r", "k", "v")
            since = thread_time()
            for _ in range(READS):
                memory.get_core("r", "k")
            reads[is_on] = (thread_time() - since) / READS
            since = thread_time()
            for n in range(READS):
                memory.write_event("r", "run_complete", f"run {n} of the solver is complete")
        appends[is_on] = (thread_time() - since) / READS
    return {
        "core_get": reads[False],
        "log_line": reads[True] - reads[False],
        "log_line_ratio": (reads[True] - reads[False]) / reads[False],
        "log_append": appends[True] - appends[False],
        "log_append_ratio": (appends[True] - appends[False]) / appends[False],
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    for name, value in figures.items():
        is_time = "ratio" not in name and "bytes" not in name
        print(f"{name:<28} {value * 1000:10.3f} ms" if is_time else f"{name:<28} {value:12.2f}")


if __name__ == "__main__":
    show(run())
