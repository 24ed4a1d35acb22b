"""Share of the slots of a search that are busy while there is work.

An instant model answers all questions but the summaries of stages, which take as long as an
attempt; attempts of random length are only waited for. Baseline: the same lengths in a plain pool
of threads. Run with ``python -m bench.search_slots``.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any
from unittest.mock import patch

from bench.common import sized
from bench.search import FakeExecutor, InstantModel, outcome
from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.service import start_search

SLOTS = 4
MEAN_S, NODES = sized((2.0, 24), (0.02, 2))
IDEA = "# Score\n\n## Evaluation\n\nMetric: score (maximize)\n"
SETTINGS: Mapping[str, Any] = {
    "search.workers": SLOTS,
    "search.model_calls": 2 * SLOTS,
    "search.num_drafts": SLOTS,
    "search.stage1_nodes": SLOTS,
    "search.stage2_nodes": NODES,
    "search.stage3_nodes": NODES,
    "search.stage4_nodes": 0,
    "search.num_seeds": 3,
    "search.plots": False,
    "search.phase0": False,
    "search.review": False,
    "search.install": "batch",
}


class SlowSummaries(InstantModel):
    """An instant model that thinks about stages as long as an attempt takes."""

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer, late where figures of a stage are shown."""
        if "\n# Figures\n" in str(messages[-1]["content"]):
            threading.Event().wait(MEAN_S)
        return super().__call__(messages)


class RandomExecutor(FakeExecutor):
    """A wait of half to one and a half times the mean, by the number of the attempt."""

    def _wait(self, job: Job) -> JobResult:
        if "run" in job.phases:
            self._never.wait(seconds(int(job.node_id[1:])))
        return outcome(job)


def seconds(step: int) -> float:
    """Return how long the run of an attempt takes."""
    return MEAN_S * Random(step).uniform(0.5, 1.5)


def busy(nodes: Sequence[Node]) -> float:
    """Return the share of all slots that is busy until the last attempt begins."""
    first, last = min(n.started_at for n in nodes), max(n.started_at for n in nodes)
    used = sum(min(n.finished_at or last, last) - n.started_at for n in nodes)
    return used / (SLOTS * (last - first))


def plain() -> float:
    """Return the share for a pool of threads that does nothing but wait."""
    spans: list[tuple[float, float]] = []

    def wait(step: int) -> None:
        since = perf_counter()
        threading.Event().wait(seconds(step))
        spans.append((since, perf_counter()))

    with ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(wait, range(1, 2 * NODES + SLOTS)))
    first, last = min(a for a, _ in spans), max(a for a, _ in spans)
    return sum(min(b, last) - a for a, b in spans) / (SLOTS * (last - first))


def run() -> dict[str, float]:
    """Return the busy share of a search's slots, and its ratio to that of the plain pool."""
    opening = "taskweaver.treesearch.engine.search.open_executor"
    with (
        tempfile.TemporaryDirectory() as folder,
        patch(opening, lambda _, sandbox, __: RandomExecutor(SLOTS, 0, sandbox)),
    ):
        project = Path(folder)
        (project / "taskweaver_config.json").write_text("{}")
        (project / "idea.md").write_text(IDEA)
        with (
            TaskWeaverApp(project, model=SlowSummaries()) as app,
            start_search(app, project / "idea.md", SETTINGS, name="run") as search,
        ):
            search.run(lambda _: None)
            share, nodes = busy(search.state.journal.nodes), len(search.state.journal)
    baseline = plain()
    return {"busy": share, "nodes": nodes, "plain": baseline, "ratio": share / baseline}


def show(figures: Mapping[str, float]) -> None:
    """Print the figures."""
    print(f"{figures['nodes']:.0f} nodes of {MEAN_S:g} s on average, {SLOTS} slots, three stages")
    print(f"  slots busy      {figures['busy']:8.1%}  goal >= 95 %")
    print(f"  plain pool      {figures['plain']:8.1%}  (baseline)")
    print(f"  ratio           {figures['ratio']:8.3f}")


if __name__ == "__main__":
    show(run())
