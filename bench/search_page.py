"""The page of a run of a thousand nodes in Chromium, beside an empty page in the same browser.

The run is made up, of real nodes with programs and logs. Timed is from the order to open the page
until its tree is drawn and a node is shown. Run with ``python -m bench.search_page``.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.common import sized
from bench.search import PROGRAM
from taskweaver.ext_role.web_explorer.devtools import DevTools
from taskweaver.ext_role.web_explorer.process import find_browser
from taskweaver.treesearch.model.artifacts import read_artifacts
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Measurement, Objective
from taskweaver.treesearch.model.node import Node, NodeError, NodeKind, NodeStatus
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.run_statistics import RunFacts
from taskweaver.treesearch.reports.html_page import write_page

NODES, REPEATS = sized((1000, 7), (4, 1))
LIMIT_S = 60.0
EMPTY = "<!doctype html><title>empty</title><body data-ready=yes>"
READY = """new Promise((done) => { const look = () => document.body?.dataset.ready
  ? requestAnimationFrame(() => done(true)) : setTimeout(look, 1); look(); })"""


def made_up(places: RunPlaces) -> Journal:
    """Return a run; every fourth node fails, every third of the others is built on."""
    objective = Objective("score")
    journal = Journal(objective)
    for step in range(1, NODES + 1):
        parent = journal.nodes[(step - 2) // 3].id if step > 3 else None
        is_bad = step % 4 == 0
        files = [{"path": "src/run.py", "content": f"{PROGRAM}print(step({step}))\n"}]
        node = Node(
            f"n{step:04d}", step, NodeKind.IMPROVE if parent else NodeKind.DRAFT, 1,
            parent=parent,
            status=NodeStatus.BUGGY if is_bad else NodeStatus.OK,
            plan=f"Try the value {step}, since the one before left room. " * 5,
            artifacts=read_artifacts({"coding": {"workspace": {"files": files}}}),
            error=NodeError("RuntimeError", "shapes differ\n" * 10) if is_bad else None,
            metric=None if is_bad else Measurement({"": step / NODES}),
            finished_at=float(step),
        )  # fmt: skip
        journal.put(node)
        logs = places.node(node.id).phase_logs
        logs.mkdir(parents=True)
        for phase in ("coding", "compile", "run"):
            (logs / f"{phase}.log").write_text(f"{phase} of {node.id}\n" * 200)
    return journal


class Browser:
    """One tab of a browser. Close it."""

    def __init__(self) -> None:
        self._tools = DevTools(find_browser(), lambda _event: None)
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        found = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = str(found["sessionId"])
        self._call("Page.enable")

    _session = ""

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._tools.call(method, params, session=self._session, within_s=LIMIT_S)

    def open(self, address: str) -> float:
        """Open a page; return the seconds until it is ready."""
        self._call("Page.navigate", url="about:blank")
        since = perf_counter()
        self._call("Page.navigate", url=address)
        assert self.value(READY) is True
        return perf_counter() - since

    def value(self, expression: str) -> Any:
        """Return what an expression gives in the page, once it is there."""
        done = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def busy(self) -> float:
        """Return the seconds of script, style and layout so far; the page has them counted."""
        self._call("Performance.enable")
        found = {
            one["name"]: one["value"] for one in self._call("Performance.getMetrics")["metrics"]
        }
        return sum(float(found[f"{name}Duration"]) for name in ("Script", "RecalcStyle", "Layout"))

    def close(self) -> None:
        """End the browser."""
        self._tools.close()


def run() -> dict[str, float]:
    """Return medians in seconds: ``page`` and ``empty``, their ratio, and the page's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        places = RunPlaces(Path(folder))
        journal = made_up(places)
        facts = RunFacts("run", "A run", 0.0)
        since = perf_counter()
        page = write_page(journal, places.folder, facts, None)
        writing = perf_counter() - since
        empty = places.folder / "empty.html"
        empty.write_text(EMPTY)
        with closing(Browser()) as browser:
            pages = page.as_uri(), empty.as_uri()
            browser.open(pages[1])
            times = [(browser.open(pages[0]), browser.open(pages[1])) for _ in range(REPEATS)]
        size = float(page.stat().st_size)
    opened, bare = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "page": opened,
        "empty": bare,
        "page_ratio": opened / bare,
        "page_written": writing,
        "page_bytes": size,
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print(f"the page of {NODES} nodes, {figures['page_bytes'] / 1e6:.1f} MB, in Chromium")
    print(f"  open          {figures['page'] * 1e3:8.1f} ms  goal <= 1000 ms")
    print(f"  empty page    {figures['empty'] * 1e3:8.1f} ms  (baseline)")
    print(f"  ratio         {figures['page_ratio']:8.1f}")
    print(f"  written in    {figures['page_written'] * 1e3:8.1f} ms")


if __name__ == "__main__":
    show(run())
