"""What five flows pass through: Python calls, modules entered, and frames down to the model.

Counted in the framework's own code, in all threads of this process, once after a warm-up: a
question, a cell of the user's, a fork, a look at an unopened branch, and a search attempt. The
baseline is the question itself. Counts hold for one version of Python (3.11 is the one to compare).
Run with ``python -m bench.flows``.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_stack
from types import FrameType

import taskweaver
from bench.search import fake_workers
from bench.search_calls import BASE, IDEA, Author
from bench.turn import instant_model
from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.service import start_search

PACKAGE = str(Path(taskweaver.__file__).parent)


@dataclass(slots=True)
class Count:
    """Calls of the package's functions, and returns into a module that was left before."""

    calls: int = 0
    files: set[str] = field(default_factory=set)
    returns: int = 0

    def handle(self, frame: FrameType, event: str, _: object) -> None:
        """Count an event of `sys.setprofile`."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        self.calls += 1
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        if caller.startswith(PACKAGE) and caller != file and file in self.files:
            self.returns += 1
        self.files.add(file)


@contextmanager
def counting() -> Iterator[Count]:
    """Count inside the block, in threads that begin there too."""
    count = Count()
    threading.setprofile(count.handle)
    sys.setprofile(count.handle)
    try:
        yield count
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Depth:
    """A model that notes how many frames of the package stand above it."""

    def __init__(self) -> None:
        self.most = 0

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer as `instant_model`."""
        files = [frame.f_code.co_filename for frame, _ in walk_stack(None)]
        frames = sum(file.startswith(PACKAGE) for file in files)
        self.most = max(self.most, frames)
        return instant_model(messages)


def run() -> dict[str, float]:
    """Return calls, modules and returns of each flow, and the frames down to the model."""
    model, figures = Depth(), dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "taskweaver_config.json").write_text("{}")
        with TaskWeaverApp(folder, model=model) as app:
            session = app.get_session()
            session.send_message("warm up")
            flows: dict[str, Callable[[], object]] = {
                "question": lambda: session.send_message("question"),
                "cell": lambda: session.run_code("1 + 1"),
                "fork": lambda: session.fork("idea"),
                "look": lambda: session.at("idea").memory.conversation.rounds,
            }
            for name, flow in flows.items():
                with counting() as count:
                    flow()
                figures |= _figures(name, count, 1)
    return figures | {"frames": model.most} | _attempt()


def _attempt() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "taskweaver_config.json").write_text('{"execution.sandbox": "none"}')
        idea = Path(folder) / "idea.md"
        idea.write_text(IDEA)
        with (
            fake_workers(1, 0.0),
            TaskWeaverApp(folder, model=Author()) as app,
            start_search(app, idea, BASE) as search,
        ):
            with counting() as count:
                search.run(lambda _: None)
            made = len(search.state.journal.nodes)
    return _figures("attempt", count, made)


def _figures(name: str, count: Count, times: int) -> dict[str, float]:
    return {
        f"{name}_calls": round(count.calls / times),
        f"{name}_modules": len(count.files),
        f"{name}_returns": round(count.returns / times),
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print(f"Python {sys.version_info.major}.{sys.version_info.minor}, the package's own functions")
    print(f"  {'':10}{'calls':>8}{'modules':>9}{'returns':>9}")
    for name in ("question", "cell", "fork", "look", "attempt"):
        counts = [figures[f"{name}_{kind}"] for kind in ("calls", "modules", "returns")]
        print(f"  {name:10}{counts[0]:8.0f}{counts[1]:9.0f}{counts[2]:9.0f}")
    print(f"  frames from send_message to the model: {figures['frames']:.0f}, goal 12")


if __name__ == "__main__":
    show(run())
