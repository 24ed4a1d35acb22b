"""A long session with a model of 8,192 tokens: what of its facts is known at its end.

Each round runs a cell that prints 20 KB; twenty rounds state a fact, some in the request, some in
an outcome. The model forgets: its summaries say nothing. Run with ``python -m bench.long_session``.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.common import sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ChatMessage
from taskweaver.session.session import Session

ROUNDS, ASKED = sized((300, None), (2, 1))
WINDOW = 8_192
CHARS_OF_A_TOKEN = 3.4
PATIENCE_S = 600.0
FACTS = (
    ("the project code is ZX-8141", "project code", "ZX-8141"),
    ("prices are in Swiss francs", "prices", "Swiss francs"),
    ("the raw file is data/2023/sales_raw.parquet", "raw file", "data/2023/sales_raw.parquet"),
    ("rows below a limit of 0.0375 are dropped", "limit rows dropped", "0.0375"),
    ("the contact is Ms Oyelaran", "contact", "Oyelaran"),
    ("we choose the median, not the mean", "choose median", "median"),
    ("the year ends in September", "year ends", "September"),
    ("the reports go to out/reports/q3", "reports", "out/reports/q3"),
    ("the threshold of alarm is 417", "threshold alarm", "417"),
    ("the colour of the region North is teal", "colour region North", "teal"),
)
NAMES = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "juniper")
PRINTED = tuple(
    (f"{name} {30_137 + 411 * n}", f"checksum {name}", str(3 * (30_137 + 411 * n)))
    for n, name in enumerate(NAMES)
)
"""Factor of a name, query, and the product that stands in an outcome alone."""


class Forgetful:
    """Model that runs a cell for each request, refuses long prompts, and forgets.

    Attributes:
        largest: Tokens of the longest prompt that it took.
        refused: Number of refusals.
        summaries: Number of summaries.
        newest: Text of the newest prompt that asks for no summary.
    """

    def __init__(self) -> None:
        self.largest = self.refused = self.summaries = 0
        self.newest = ""

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer a prompt.

        Raises:
            ModelError: Of kind ``context_overflow``, if it does not fit.
        """
        prompt = json.dumps(list(messages), ensure_ascii=False)
        tokens = int(len(prompt) / CHARS_OF_A_TOKEN)
        if tokens > WINDOW:
            self.refused += 1
            words = f"maximum context length is {WINDOW} tokens, {tokens} were sent"
            raise ModelError("context_overflow", words)
        newest = str(messages[-1]["content"])
        if "## Notes so far" in newest:
            self.summaries += 1
            return "The user asks for things, and gets them."
        self.newest, self.largest = prompt, max(self.largest, tokens)
        if "Lines of earlier rounds" in newest or "From: CodeInterpreter" in newest:
            return _reply(send_to="User", message="It is done.")
        if "look up: " in newest:
            return _reply(send_to="Planner", recall=newest.rpartition("look up: ")[2].strip("\n> "))
        order = newest.rpartition("checksum of ")[2].split()
        code = "print('word ' * 4000)"
        if len(order) > 1:
            code += f"\nprint('checksum_{order[0]}', 3 * {order[1]})"
        return _reply(send_to="CodeInterpreter", message="print", code=code)


def run() -> dict[str, float]:
    """Return the figures: rounds, tokens, refusals, summaries, and facts known at the end."""
    model = Forgetful()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "taskweaver_config.json").write_text("{}", "utf-8")
        with TaskWeaverApp(folder, model=model) as app:
            session = app.get_session()
            times = _play(session)
            known = _known(session, model)
            id_ = session.session_id
        made = model.summaries
        with TaskWeaverApp(folder, model=model) as app:
            resumed = _known(app.resume_session(id_), model)
    return {
        "rounds": len(times),
        "round_s": statistics.median(times),
        "last_round_s": times[-1],
        "largest_prompt_tokens": model.largest,
        "refused": model.refused,
        "summaries": model.summaries,
        "summaries_after_resume": model.summaries - made,
        "facts": len(FACTS) + len(PRINTED),
        "known": known,
        "known_after_resume": resumed,
    }


def _play(session: Session) -> list[float]:
    """Play the rounds, with the facts in the first two thirds; return the seconds of each."""
    step = max(ROUNDS * 2 // 3 // len(FACTS), 1)
    times = []
    for number in range(ROUNDS):
        which, offset = divmod(number, step)
        request = f"go on with part {number}"
        if not offset and which < len(FACTS):
            request = f"{FACTS[which][0]}; print the checksum of {PRINTED[which][0]}"
        times.append(_timed(lambda text=request: session.send_message(text)))  # type: ignore[misc]
        _wait_for_summary()
    return times


def _known(session: Session, model: Forgetful) -> int:
    """Return how many facts stand in a prompt, or in what is looked up."""
    asked = (*FACTS, *PRINTED)[:ASKED]
    return sum(_is_known(session, model, query, fact) for _, query, fact in asked)


def _is_known(session: Session, model: Forgetful, query: str, fact: str) -> bool:
    session.send_message(f"look up: {query}")
    _wait_for_summary()
    return fact in model.newest


def _wait_for_summary() -> None:
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(PATIENCE_S)


def _timed(work: Callable[[], Any]) -> float:
    since = perf_counter()
    state = work().state
    if state != "finished":
        raise RuntimeError(f"a round ended as {state}")
    return perf_counter() - since


def _reply(**fields: str) -> str:
    return json.dumps({"response": fields})
