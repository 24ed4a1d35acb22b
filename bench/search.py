"""What a search costs beside its attempts: CPU time per node, idle slots, opening a run again.

An instant model in this process is asked one question per node, and a stand-in carries out its
phases; engine, memory, log and prompts are the real ones. Every third node
is better than all before, every third fails, so that the tree grows deep. Baselines: a small run
beside a large one, the same sleeps without a search, and reading the log without making anything
of it. Run with ``python -m bench.search``.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from bench.common import sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.execution.executors.local import LocalExecutor
from taskweaver.treesearch.execution.executors.protocol import NO_RESOURCES, JobCall, Resources
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.model.node import NodeError, PhaseOutcome
from taskweaver.treesearch.record.runlog import RunState
from taskweaver.treesearch.service import resume_search, start_search

SMALL, LARGE = sized((100, 1000), (4, 8))
SLOTS, SLEEPS, SLEEP_S = sized((8, 64, 1.0), (2, 2, 0.01))
IDEA = "# Score\n\n## Evaluation\n\nMetric: score (maximize)\n"
MEMORY = '<memory_update>{"core": {"last_try": "noted"}}</memory_update>\n'
PROGRAM = "import json\n\n\ndef step(state):\n    return state * 0.5 + 1\n\n\n" * 20
SETTINGS: Mapping[str, Any] = {
    "search.stage1_nodes": 16,
    "search.stage2_nodes": 5000,
    "search.num_drafts": SLOTS,
    "search.num_seeds": 0,
    "search.plots": False,
    "search.phase0": False,
    "search.install": "batch",
    "search.review": False,
    "search.summaries": False,
}


class InstantModel:
    """Answers every question of a node at once; each program differs from all before."""

    def __init__(self, *commands: str) -> None:
        """Take the commands of all programs; ``{}`` in one is the number of the program."""
        self._commands = commands or ("python src/run.py",)
        self._numbers = count()

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return everything a question may ask for, after a memory block where one is wanted."""
        number = next(self._numbers)
        files = [{"path": "src/run.py", "content": f"{PROGRAM}print(step({number}))\n"}]
        answer = {
            "plan": f"Try the value {number}, since the one before left room.",
            "name": f"value={number}",
            "phase_artifacts": {
                "download": {"commands": []},
                "coding": {"workspace": {"root": "/workspace", "files": files}},
                "compile": {"commands": []},
                "run": {"commands": [text.replace("{}", str(number)) for text in self._commands]},
            },
            "command": "",
            "done": True,
            "is_bug": False,
            "summary": "it did what it set out to do",
            "findings": "the value matters",
            "significance": "some",
            "next_steps": "another value",
        }
        has_memory = "\n# Memory\n" in str(messages[-1]["content"])
        return (MEMORY if has_memory else "") + json.dumps(answer)


class FakeExecutor(LocalExecutor):
    """Comes back with the outcome of a job after a time, without doing it."""

    def __init__(self, slots: int, seconds: float, sandbox: SandboxRequest) -> None:
        super().__init__(1, sandbox)
        self._seconds = seconds
        self._never = threading.Event()
        self._waiting = ThreadPoolExecutor(slots)

    def submit(
        self,
        call: JobCall[Any],
        deadline_s: float,  # noqa: ARG002
        resources: Resources = NO_RESOURCES,  # noqa: ARG002
    ) -> Future[Any]:
        """Return what would have come of the job; what is no job of a node is done."""
        if not (call.args and isinstance(call.args[0], Job)):
            return self._waiting.submit(call.function, *call.args)
        return self._waiting.submit(self._wait, call.args[0])

    def _wait(self, job: Job) -> JobResult:
        if "run" in job.phases:
            self._never.wait(self._seconds)
        return outcome(job)

    def close(self) -> None:
        """End the threads."""
        self._waiting.shutdown(cancel_futures=True)
        super().close()


def fake_workers(slots: int, seconds: float) -> AbstractContextManager[object]:
    """Have searches that open meanwhile use workers that only wait."""
    opening = "taskweaver.treesearch.engine.search.open_executor"
    return patch(opening, lambda _, sandbox, __: FakeExecutor(slots, seconds, sandbox))


def outcome(job: Job) -> JobResult:
    """Return what came of a job; its number decides."""
    step = int(job.node_id[1:])
    is_bad = step % 3 == 2
    ends = {name: "failed" if is_bad and name == "run" else "ok" for name in job.phases}
    error = NodeError("RuntimeError", f"step {step} failed") if "failed" in ends.values() else None
    return JobResult(
        phases=tuple(PhaseOutcome(name, status, 0.1, 0) for name, status in ends.items()),
        error=error,
        output=f"epoch of {step}\n" * 40,
        result={"metric": 1.0 + step if step % 3 == 0 else 0.5, "details": {"loss": 1.0 / step}},
        exec_seconds=0.1,
    )


@contextmanager
def application(folder: Path, *commands: str) -> Iterator[TaskWeaverApp]:
    """Give an application of a project made for it; its model proposes these commands."""
    folder.mkdir()
    (folder / "taskweaver_config.json").write_text("{}")
    (folder / "idea.md").write_text(IDEA)
    with TaskWeaverApp(folder, model=InstantModel(*commands)) as app:
        yield app


def new_search(app: TaskWeaverApp, steps: int, slots: int) -> Search:
    """Return a search of so many nodes."""
    settings = {**SETTINGS, "search.steps": steps, "search.workers": slots}
    return start_search(app, Path(app.app_dir) / "idea.md", settings, name="run")


def worked(app: TaskWeaverApp, steps: int) -> list[float]:
    """Work on a run of so many instant nodes; return CPU seconds at the beginning of each."""
    times: list[float] = []

    def changed(state: RunState) -> None:
        while len(times) < len(state.journal):
            times.append(process_time())

    with fake_workers(2, 0.0), new_search(app, steps, 2) as search:
        times.append(process_time())
        search.run(changed)
        times.append(process_time())
        assert len(search.state.journal) == steps, search.state.reason
    return times


def parallel(place: Path) -> dict[str, float]:
    """Return how long nodes of a second take in parallel, and the same sleeps alone."""
    with application(place / "fake") as app, fake_workers(SLOTS, SLEEP_S):
        fake = finished(app)
    metric = "mkdir -p working; echo '{\"metric\": {}}' > working/result.json"
    with application(place / "real", f"sleep {SLEEP_S:g}; {metric}") as app:
        real = finished(app)
    since = perf_counter()
    with ThreadPoolExecutor(SLOTS) as threads:
        for _ in range(SLEEPS):
            threads.submit(subprocess.run, ["sleep", f"{SLEEP_S:g}"], check=True)
    bare = perf_counter() - since
    return {
        "parallel": fake,
        "parallel_real": real,
        "bare_sleeps": bare,
        "parallel_ratio": fake / bare,
        "parallel_real_ratio": real / bare,
    }


def finished(app: TaskWeaverApp) -> float:
    """Work on a run of nodes that take a second; return seconds."""
    with new_search(app, SLEEPS, SLOTS) as search:
        since = perf_counter()
        search.run(lambda _: None)
        assert len(search.state.journal) == SLEEPS, search.state.reason
        return perf_counter() - since


def opened(app: TaskWeaverApp) -> dict[str, float]:
    """Return how long opening the run takes, and reading its log without more."""
    times, bare = [], []
    for _ in range(5):
        since = perf_counter()
        with resume_search(app, "run") as search:
            times.append(perf_counter() - since)
            log = search.places.log
        since = perf_counter()
        for line in log.read_bytes().splitlines():
            json.loads(line)
        bare.append(perf_counter() - since)
    best = min(times)
    return {"open": best, "bare_log": min(bare), "open_ratio": best / min(bare)}


def run() -> dict[str, float]:
    """Return seconds and ratios to the baselines; goals stand in docs/search.md."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with application(place / "warm") as app:
            worked(app, min(10, SMALL))
        for steps in (SMALL, LARGE):
            with application(place / f"of_{steps}") as app:
                times = worked(app, steps)
                figures[f"cpu_per_node_{steps}"] = (times[-1] - times[0]) / steps
                if steps == LARGE:
                    last = (times[-1] - times[-SMALL - 1]) / SMALL
                    figures[f"cpu_per_node_last_{SMALL}"] = last
                    figures |= opened(app)
        figures |= parallel(place)
    per_node = figures[f"cpu_per_node_{LARGE}"]
    return figures | {"cpu_ratio": per_node / figures[f"cpu_per_node_{SMALL}"]}


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    ms = {name: value * 1e3 for name, value in figures.items()}
    print("coordinator's CPU time per node; with memory; an instant model")
    print(f"  run of {SMALL:<5}          {ms[f'cpu_per_node_{SMALL}']:8.2f} ms  (baseline)")
    print(f"  run of {LARGE:<5}          {ms[f'cpu_per_node_{LARGE}']:8.2f} ms  goal <= 20 ms")
    print(f"  its last {SMALL}          {ms[f'cpu_per_node_last_{SMALL}']:8.2f} ms")
    print(f"  ratio                 {figures['cpu_ratio']:8.2f}     goal <= 1.2")
    print(f"{SLEEPS} nodes of {SLEEP_S:g} s, {SLOTS} at a time")
    print(f"  taken                 {figures['parallel']:8.2f} s   goal <= 9.5 s")
    print(f"  of the bare sleeps    {figures['parallel_ratio']:8.2f}")
    print(f"  in real workers       {figures['parallel_real']:8.2f} s   sandboxed")
    print(f"  of the bare sleeps    {figures['parallel_real_ratio']:8.2f}")
    print(f"a run of {LARGE} open again {ms['open']:8.1f} ms  goal <= 1000 ms")
    print(f"  of reading its log    {figures['open_ratio']:8.2f}")


if __name__ == "__main__":
    show(run())
