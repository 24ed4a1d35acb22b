"""Reads of the branched memory: search along a lineage, rendering, and inherited events.

Baselines of the same run: for search the same words through FTS5 alone over all records, for
events and for opening the bare rows through `sqlite3`. Run with ``python -m bench.memory_reads``.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bench.branched_memory import median, show
from bench.common import sized
from taskweaver.memory.branched import MemoryConfig, MemoryManager

QUIET = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")
REPEATS = sized(50, 2)
ANCESTORS = sized(30, 3)
LINES = 5
"""Lines of descent that share no branch but the root; the last branch of the first one reads."""
COMMON = "solver matrix thread cache buffer kernel compile linker error metric loss batch".split()
VOCABULARY = [f"term{n}" for n in range(4000)]
WEIGHTS = [1 / (n + 1) for n in range(len(VOCABULARY))]
QUERIES = {
    "rare": "term3000",
    "medium": "term60 term80 term100",
    "common": "solver matrix thread",
    "mixed": "the term2500 error in the solver",
    "unseen": "elsewhere",
    "unseen_common": "elsewhere solver",
    "long": " ".join([*COMMON, *VOCABULARY[20:60:2]]),
    "none": "zebra",
    "empty": "",
}


def run() -> dict[str, float]:
    """Return medians in seconds and ratios to the baselines."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return {
            **_search(place, "10k", sized(10_000, 60)),
            **_search(place, "100k", sized(100_000, 120)),
            **_events(place),
            **_opening(place),
        }


def _text(rng: random.Random, n: int, *, is_seen: bool) -> str:
    words = rng.choices(COMMON, k=8) + rng.choices(VOCABULARY, WEIGHTS, k=20)
    return f"record {n}: " + " ".join(words) + ("" if is_seen else " elsewhere")


def _search(place: Path, size: str, count: int) -> dict[str, float]:
    rng = random.Random(1)
    with MemoryManager(place / f"search{size}.sqlite", QUIET) as memory:
        reader = _grow(memory, rng, count)
        figures = {
            f"search_{size}_{name}": median(
                partial(memory.mem_archival_search, query, k=10, branch_id=reader), REPEATS
            )
            for name, query in QUERIES.items()
        }
        plain = memory._parts.database.reading  # noqa: SLF001 - the baseline
        base = median(
            lambda: plain.execute(
                "SELECT rowid FROM archival_fts WHERE archival_fts MATCH 'solver OR matrix'"
                " ORDER BY bm25(archival_fts) LIMIT 10"
            ).fetchall(),
            min(5, REPEATS),
        )
        render = median(
            lambda: memory.render_for_prompt(reader, "draft", task=QUERIES["mixed"]), REPEATS
        )
    slowest = max(figures.values())
    return {
        **figures,
        f"render_{size}": render,
        f"plain_bm25_{size}": base,
        f"search_{size}_slowest_ratio": slowest / base,
    }


def _grow(memory: MemoryManager, rng: random.Random, count: int) -> str:
    """Fill lines of descent side by side; return the last branch of the first."""
    memory.create_branch(None, branch_id="root")
    names = ["root"] * LINES
    archival, database = memory._parts.archival, memory._parts.database  # noqa: SLF001
    steps = range(0, count, max(1, count // ANCESTORS))
    for start in steps:
        for line in range(LINES):
            names[line] = memory.fork(names[line], f"line{line}-{start}")

        def fill(writer: Any, start: int = start) -> None:
            for n in range(start, min(count, start + steps.step)):
                text = _text(rng, n, is_seen=n % LINES == 0)
                archival.add(writer, names[n % LINES], text, tags=["T"])

        database.write(fill)
    return names[0]


def _events(place: Path, count: int = sized(1100, 20)) -> dict[str, float]:
    """Return reads of a node that inherits events, beside the bare rows."""
    with MemoryManager(place / "events.sqlite", QUIET) as memory:
        memory.create_branch(None, branch_id="root")
        recall, database = memory._parts.recall, memory._parts.database  # noqa: SLF001

        def fill(writer: Any) -> None:
            for n in range(count):
                event = {"kind": "step", "content": f"event {n}", "loss": n, "node_id": "n1"}
                recall.append(writer, "root", event)

        database.write(fill)
        memory.fork("root", "child")
        plain = database.reading
        readers: dict[str, Callable[[], Sequence[object]]] = {
            "node_read": lambda: list(memory.mem_node_read("child")),
            "all": lambda: memory["child"].events(),
            "found": lambda: memory.mem_recall_search("9", branch_id="child"),
            "bare_rows": lambda: plain.execute("SELECT * FROM events ORDER BY seq DESC").fetchall(),
        }
        return {f"events_{count}_{name}": median(read, REPEATS) for name, read in readers.items()}


def _opening(place: Path, count: int = sized(500, 5)) -> dict[str, float]:
    """Return the time to open a file of branches and read one, beside opening it bare."""
    figures = {}
    for shape, children in (("flat", count), ("tree", 3)):
        path = place / f"{shape}.sqlite"
        with MemoryManager(path, QUIET) as memory:
            memory.create_branch(None, branch_id="b0")
            for n in range(1, count):
                memory.fork(f"b{(n - 1) // children}", f"b{n}")
                memory.mem_node_write(f"b{n}", recall_event={"kind": "step", "content": f"{n}"})
        figures[f"open_{count}_{shape}"] = median(partial(_open, path, f"b{count - 1}"), REPEATS)
        figures[f"bare_open_{shape}"] = median(partial(_open_bare, path), REPEATS)
    return figures


def _open(path: Path, branch: str) -> None:
    with MemoryManager(path, QUIET) as memory:
        memory.mem_node_read(branch)


def _open_bare(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM events WHERE branch_id = 1").fetchall()


if __name__ == "__main__":
    show(run())
