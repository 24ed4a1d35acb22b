"""The framework's own CPU time per turn, in a conversation that grows to 200 rounds.

An instant model in this process answers; each turn is a plan, a cell in a real kernel, and an
answer, and the round's end with the kernel's state kept, as in the default configuration. Old
rounds are not summarised, so prompts carry the whole conversation. The baseline is the beginning
of the same conversation. CPU time is that of this process with all its threads, so work that a
round leaves to the background counts in the next one. Run with ``python -m bench.turn``.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from time import process_time

from bench.common import sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.module.event_emitter import PostEventType, TaskWeaverEvent
from taskweaver.session.session import Session

ROUNDS, SAMPLE = sized((200, 20), (4, 2))
PARTS = ("plan", "cell", "answer", "end")
CONFIG = {"planner.prompt_compression": False, "code_generator.prompt_compression": False}


def instant_model(messages: Sequence[ChatMessage]) -> str:
    """Answer at once: write code, order a step, or tell the result."""
    if "You are the Planner" not in str(messages[0]["content"]):
        fields = {"thought": "easy", "reply_type": "python", "reply_content": "40 + 2"}
    else:
        is_report = str(messages[-1]["content"]).startswith("From: CodeInterpreter")
        fields = {
            "plan_reasoning": "one step is enough for this, and its result is the answer",
            "plan": "1. compute it",
            "current_plan_step": "1. compute it",
            "stop": "Completed" if is_report else "InProcess",
            "send_to": "User" if is_report else "CodeInterpreter",
            "message": "It is 42." if is_report else "Compute 40 + 2.",
        }
    return json.dumps({"response": fields})


class Clock:
    """Notes the CPU time at the end of each post.

    Attributes:
        marks: The CPU times of the round.
    """

    def __init__(self) -> None:
        self.marks = [process_time()]

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""
        if event.t is PostEventType.post_end:
            self.marks.append(process_time())


def run() -> dict[str, float]:
    """Return medians of CPU seconds per turn, ``first`` and ``last``, their ratio and parts."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "taskweaver_config.json").write_text("{}")
        with TaskWeaverApp(folder, model=instant_model, config=CONFIG) as app:
            session = app.get_session()
            session.send_message("warm up")
            turns = [_parts(session, f"question {number}") for number in range(ROUNDS)]
    figures = {}
    for name, sample in {"first": turns[:SAMPLE], "last": turns[-SAMPLE:]}.items():
        figures[name] = statistics.median(map(sum, sample))
        for part, seconds in zip(PARTS, zip(*sample, strict=True), strict=True):
            figures[f"{name}_{part}"] = statistics.median(seconds)
    return figures | {"ratio": figures["last"] / figures["first"]}


def _parts(session: Session, question: str) -> list[float]:
    """Return the CPU seconds of a turn's parts."""
    clock = Clock()
    session.send_message(question, clock)
    clock.marks.append(process_time())
    return [end - start for start, end in pairwise(clock.marks)]


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    print("framework CPU per turn (plan, cell, answer, round's end), instant model")
    for name, label in {
        "first": f"rounds 1-{SAMPLE}",
        "last": f"last {SAMPLE} of {ROUNDS}",
    }.items():
        parts = ", ".join(f"{part} {figures[f'{name}_{part}'] * 1e3:.1f}" for part in PARTS)
        print(f"  {label:<16}{figures[name] * 1e3:7.2f} ms   goal <= 20 ms   ({parts})")
    print(f"  {'ratio':<16}{figures['ratio']:7.2f}      goal <= 1.2")


if __name__ == "__main__":
    show(run())
