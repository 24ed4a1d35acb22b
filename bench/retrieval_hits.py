"""Search in archival memory: facts found within five, by language, and the time of a query.

The questions are in ``bench/retrieval``. Of each language, odd entries served the development, and
even entries were held out. All facts stand in one memory. `silent` is the share of questions that
have no answer for which nothing is claimed. Run with ``python -m bench.retrieval_hits``.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.common import sized
from taskweaver.memory.branched import BranchedMemory, MemoryConfig
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.vectors.embedders import static_embedder
from taskweaver.utils.retrieval import Embedder

FOLDER = Path(__file__).parent / "retrieval"
LANGUAGES = ("en", "en_far", "de", "zh", "ja", "ko")
QUIET = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")
WITHIN, REPEATS = 5, sized(5, 1)
SIZES = sized((10_000, 100_000), (200,))

Figures = dict[str, float]


def run() -> Figures:
    """Return shares of facts found, and seconds of queries, with and without vectors."""
    found: Figures = {}
    for kind, embedder in (("words", None), ("vectors", static_embedder())):
        with tempfile.TemporaryDirectory() as folder:
            found |= {f"{kind}_{name}": value for name, value in _hits(folder, embedder).items()}
            found |= {f"{kind}_{name}": value for name, value in _times(folder, embedder).items()}
    return found


def _sets() -> dict[str, Any]:
    return {
        language: yaml.safe_load((FOLDER / f"facts_{language}.yaml").read_text("utf-8"))
        for language in LANGUAGES
    }


def _facts(sets: Mapping[str, Any]) -> list[str]:
    return [
        fact
        for each in sets.values()
        for fact in [*(fact for fact, _ in each["pairs"]), *each["unasked"]]
    ]


def _hits(folder: str, embedder: Embedder | None) -> Figures:
    sets, found = _sets(), Figures()
    with BranchedMemory(Path(folder, "hits.sqlite"), QUIET, embedder=embedder) as memory:
        branch = memory.create("facts")
        for fact in _facts(sets):
            branch.remember(fact)
        for half, start in (("developed", 0), ("held_out", 1)):
            hits = {name: _found(branch, each["pairs"][start::2]) for name, each in sets.items()}
            english = [*hits["en"], *hits["en_far"]]
            five = [english, hits["de"], hits["zh"], hits["ja"], hits["ko"]]
            found |= {f"{half}_{name}": statistics.mean(each) for name, each in hits.items()}
            found[f"{half}_english"] = statistics.mean(english)
            found[f"{half}_five"] = statistics.mean(statistics.mean(each) for each in five)
        claims = [
            any(record.match == "query" for record in branch.search(question, WITHIN))
            for each in sets.values()
            for question in each["unanswerable"]
        ]
        found["silent"] = 1 - statistics.mean(claims)
    return found


def _found(branch: BranchHandle, pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Return whether the fact of each question is among the first."""
    return [
        fact in [record.text for record in branch.search(question, WITHIN)]
        for fact, question in pairs
    ]


def _times(folder: str, embedder: Embedder | None) -> Figures:
    """Return the seconds of the questions, and of indexing 1,000 records at the first search."""
    sets, found = _sets(), Figures()
    facts, rng = _facts(sets), random.Random(1)
    words = [word for fact in facts for word in fact.split()]
    questions = [question for each in sets.values() for _, question in each["pairs"]]
    for size in SIZES:
        path = Path(folder, f"{size}.sqlite")
        with BranchedMemory(path, QUIET, embedder=embedder) as memory:
            branch = memory.create("facts")
            for start in range(0, size, 1000):
                records = [
                    {"text": f"{rng.choice(facts)} {' '.join(rng.sample(words, 8))} {start + n}"}
                    for n in range(min(1000, size - start))
                ]
                branch.write(records=records)
            since = time.thread_time()
            branch.search("revenue")
            found[f"index_{size}_1000"] = (time.thread_time() - since) / size * 1000
            times = [_seconds(branch, question) for question in questions]
            found[f"query_{size}"] = statistics.median(times)
            found[f"query_{size}_slowest_tenth"] = statistics.quantiles(times, n=10)[-1]
    return found


def _seconds(branch: BranchHandle, question: str) -> float:
    """Return the processor's seconds of a query, the fewest of a few: others use the machine."""
    times = []
    for _ in range(REPEATS):
        since = time.thread_time()
        branch.search(question, 10)
        times.append(time.thread_time() - since)
    return min(times)


def show(figures: Mapping[str, float]) -> None:
    """Print a table."""
    names = [name.removeprefix("words_") for name in figures if name.startswith("words_")]
    print(f"{'':32}{'words':>10}{'vectors':>10}")
    for name in names:
        row = [figures[f"{kind}_{name}"] for kind in ("words", "vectors")]
        is_time = name.startswith(("query", "index"))
        shown = [f"{value * 1000:.2f} ms" if is_time else f"{value:.2f}" for value in row]
        print(f"{name:32}{shown[0]:>10}{shown[1]:>10}")


if __name__ == "__main__":
    show(run())
