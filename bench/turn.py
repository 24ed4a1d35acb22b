"""The framework's own CPU time per turn, in a conversation that grows to 200 rounds.

An instant model in this process answers; each turn is a plan, a cell in a real kernel, and an
answer. Old rounds are not summarised, so prompts carry the whole conversation. The baseline is
the beginning of the same conversation. Run with ``python -m bench.turn``.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage

ROUNDS = 200
SAMPLE = 20
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


def run() -> dict[str, float]:
    """Return CPU seconds per turn: ``first`` and ``last`` medians, and their ``ratio``."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "taskweaver_config.json").write_text("{}")
        with TaskWeaverApp(folder, model=instant_model, config=CONFIG) as app:
            session = app.get_session()
            session.send_message("warm up")
            for number in range(ROUNDS):
                since = process_time()
                session.send_message(f"question {number}")
                times.append(process_time() - since)
    first = statistics.median(times[:SAMPLE])
    last = statistics.median(times[-SAMPLE:])
    return {"first": first, "last": last, "ratio": last / first}


def main() -> None:
    """Print the figures."""
    figures = run()
    print("framework CPU per turn (plan, cell, answer), instant model")
    print(f"  rounds 1-{SAMPLE}      {figures['first'] * 1e3:7.2f} ms   (baseline)")
    print(f"  last {SAMPLE} of {ROUNDS}   {figures['last'] * 1e3:7.2f} ms   goal <= 20 ms")
    print(f"  ratio          {figures['ratio']:7.2f}      goal <= 1.2")


if __name__ == "__main__":
    main()
