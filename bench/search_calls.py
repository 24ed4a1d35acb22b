"""Calls and prompt tokens of a search attempt by its depth, for two calls and for the seeds' way.

A model in this process writes programs of 80 lines, reviews and notes of usual length; a stand-in
carries out the phases. Each attempt is better than the one before, so that the tree is one line.
Tokens are estimated, as for any model that reports none. The baseline is ``search.calls = seeds``
with a plan for each attempt, as the original asks. Run with ``python -m bench.search_calls``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from bench.common import sized
from bench.search import fake_workers
from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.service import start_search

DEPTHS = sized(6, 1)
LINES = 80
IDEA = """# Transpose

Transpose a matrix of 4096 x 4096 doubles in C, out of place, as fast as the memory allows. Check
the result against a plain loop, and measure the median of nine runs.

## Evaluation

Metric: bandwidth (GB/s, maximize)
"""
LINE = "    for (int j = 0; j < n; j++) out[j * n + i] = in[i * n + j];  // {}\n"
PROGRAM = "".join(LINE.replace("{}", str(n)) for n in range(LINES))
NOTES = {
    "core": {"algorithm_approach": "tiles of 32 x 32, rows first, prefetch of the next tile"},
    "archival": [
        {
            "text": "Tiles of 32 reach 1.1 GB/s and of 64 only 0.9: the second level cache holds"
            " both tiles of 32. Prefetching one tile ahead changes nothing.",
            "tags": ["OPTIMIZATION"],
        }
    ],
}
REVIEW = (
    "The program ran, its result agrees with the plain loop, and the median of nine runs was taken."
    " It does what it set out to do; the bandwidth is better than before."
)
LESSONS = {
    "findings": "Smaller tiles fit the first level cache; the gain over the parent is 8 percent.",
    "significance": "The cache decides, not the arithmetic.",
    "next_steps": "Try non-temporal stores, then two threads with pinned pages.",
}
BASE: Mapping[str, Any] = {
    "search.num_drafts": 1, "search.stage1_nodes": 1, "search.stage2_nodes": DEPTHS,
    "search.stage3_nodes": 0, "search.stage4_nodes": 0, "search.num_seeds": 0,
    "search.install": "batch", "search.workers": 1,
}  # fmt: skip
WAYS: Mapping[str, Mapping[str, Any]] = {
    "two": {"search.calls": "two"},
    "seeds": {"search.calls": "seeds", "search.phase0": "node"},
}


class Author:
    """Answers each question as a model that keeps the form."""

    def __init__(self) -> None:
        self._numbers = count()

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return the reply to a prompt."""
        prompt = str(messages[-1]["content"])
        block = f"<memory_update>{json.dumps(NOTES)}</memory_update>\n"
        if "first of two questions" in prompt:
            return block
        body = self._body(prompt)
        return block + body if "<memory_update>" in prompt else body

    def _body(self, prompt: str) -> str:
        number = next(self._numbers)
        if "# Kind of attempt" in prompt and "```file" in prompt:
            return self._fences(number, is_first="\n# Made from" not in prompt)
        files = [{"path": "src/main.c", "content": f"{PROGRAM}// {number}\n"}]
        answer = {
            "plan": f"Take tiles of {number}, since the caches hold them. {REVIEW}",
            "name": f"tile={number}",
            "phase_artifacts": {"coding": {"workspace": {"files": files}}, **commands()},
            "is_bug": False, "summary": REVIEW, **LESSONS, "untrue": [], "plots": False,
            "code": "open('working/a.png', 'wb')", "selected_plots": [],
        }  # fmt: skip
        return json.dumps(answer)

    def _fences(self, number: int, *, is_first: bool) -> str:
        plan = f"Take tiles of {number}, since the caches hold them. {REVIEW}"
        if is_first:
            asked = json.dumps({"name": "", **commands()})
            file = f"```file src/main.c\n{PROGRAM}```\n\n"
            return f"{plan}\n\n{file}```commands\n{asked}\n```"
        row = number % LINES
        old = LINE.replace("{}", str(row))
        block = f"<<<<<<< SEARCH\n{old}=======\n{old}\n>>>>>>> REPLACE"
        name = json.dumps({"name": f"tile={number}"})
        return f"{plan}\n\n```edit src/main.c\n{block}\n```\n\n```commands\n{name}\n```"


def commands() -> dict[str, Any]:
    """Return the commands of each attempt."""
    compile_ = {"build_plan": {"language": "other"}, "commands": ["cc -O2 -o main src/main.c"]}
    return {"compile": compile_, "run": {"commands": ["./main"]}}


def nodes_of(folder: Path, settings: Mapping[str, Any]) -> list[Node]:
    """Search with one way of asking; return the nodes in order."""
    folder.mkdir()
    (folder / "taskweaver_config.json").write_text('{"execution.sandbox": "none"}')
    (folder / "idea.md").write_text(IDEA)
    with fake_workers(1, 0.0), TaskWeaverApp(folder, model=Author()) as app:
        with start_search(app, folder / "idea.md", {**BASE, **settings}, name="run") as made:
            made.run(lambda _: None)
        return [node for node in made.state.journal.nodes if node.artifacts is not None]


def run() -> dict[str, float]:
    """Return calls and prompt tokens by way and depth."""
    with tempfile.TemporaryDirectory() as scratch:
        found = {way: nodes_of(Path(scratch) / way, keys) for way, keys in WAYS.items()}
    figures: dict[str, float] = {}
    for way, nodes in found.items():
        for depth, node in enumerate(nodes):
            figures[f"{way}_calls_{depth}"] = node.cost.calls
            figures[f"{way}_tokens_{depth}"] = node.cost.prompt_tokens
    return figures


def show(figures: dict[str, float]) -> None:
    """Print the figures by depth, and the ratio of both ways."""
    print("calls and prompt tokens of an attempt; goals at depth 4: <= 2.5 and <= 6,000")
    print("depth    calls: two   seeds     tokens: two     seeds   ratio")
    for depth in range(sum(name.startswith("two_calls") for name in figures)):
        calls, tokens = (
            [figures[f"{way}_{what}_{depth}"] for way in WAYS] for what in ("calls", "tokens")
        )
        print(
            f"{depth:>5} {calls[0]:>13.0f} {calls[1]:>7.0f} {tokens[0]:>15,.0f} {tokens[1]:>9,.0f}"
            f" {tokens[0] / max(tokens[1], 1):>7.2f}"
        )


if __name__ == "__main__":
    show(run())
