"""Chats killed with SIGKILL while they answer: what they said was finished is still there.

``python -m bench.chat_kills 100`` kills a chat a hundred times, at random moments, and resumes its
session after each; without a number it does so ten times. A chat is killed up to a second after it
opened or after it finished one or two rounds; the first one never before it finished a round. The
model is instant, the kernel real.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from time import perf_counter

from bench.common import show, sized
from taskweaver.app.app import TaskWeaverApp

KILLS = sized(10, 1)
CHAT = """
import sys
from bench.turn import CONFIG, instant_model
from taskweaver.app.app import TaskWeaverApp

with TaskWeaverApp(sys.argv[1], model=instant_model, config=CONFIG) as app:
    session = app.resume_session() if sys.argv[2:] else app.get_session()
    print("open", flush=True)
    for number in range(1_000_000):
        round_ = session.send_message(f"question {number}")
        print(round_.id, len(round_.post_list), flush=True)
"""


def run(kills: int = KILLS) -> dict[str, float]:
    """Return how many rounds were told finished, how many of them are lost, and failed resumes."""
    rng = random.Random(0)
    told: dict[str, int] = {}
    kept: dict[str, int] = {}
    torn = failed = 0
    since = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "taskweaver_config.json").write_text("{}")
        for _ in range(kills):
            rounds_first = rng.randrange(3) if told else 1
            told |= _killed(folder, rounds_first, rng.uniform(0.05, 1.0), is_resumed=bool(told))
            with TaskWeaverApp(folder, model=lambda _: "") as app:
                rounds = app.resume_session().memory.conversation.rounds
            kept = {round_.id: len(round_.post_list) for round_ in rounds}
            failed += any(kept.get(id_) != posts for id_, posts in told.items())
            torn = sum(round_.state == "failed" for round_ in rounds)
    lost = sum(kept.get(id_) != posts for id_, posts in told.items())
    return {
        "kills": float(kills),
        "rounds_told": float(len(told)),
        "rounds_lost": float(lost),
        "resumes_failed": float(failed),
        "rounds_torn": float(torn),
        "seconds": perf_counter() - since,
    }


def _killed(folder: str, rounds_first: int, after_s: float, *, is_resumed: bool) -> dict[str, int]:
    """Let a chat finish some rounds, kill it after a while, and return the rounds it reported."""
    command = [sys.executable, "-c", CHAT, folder, *(["resume"] if is_resumed else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        lines = [process.stdout.readline() for _ in range(rounds_first)]
        timer = Timer(after_s, process.send_signal, [signal.SIGKILL])
        timer.start()
        lines += process.stdout.read().splitlines(keepends=True)
        timer.join()
    whole = [line.split() for line in lines if line.endswith("\n")]
    return {parts[0]: int(parts[1]) for parts in whole}


if __name__ == "__main__":
    show(run(int(sys.argv[1]) if len(sys.argv) > 1 else KILLS))
