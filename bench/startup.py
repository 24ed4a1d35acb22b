"""Start-up: importing the package and its memory, ``--help``, the time until one can type.

Each is measured beside ``python -c pass`` in the same run, alternating; what counts is the
difference. Run with ``python -m bench.startup``.
"""

from __future__ import annotations

import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from time import perf_counter

from bench.common import sized

ROUNDS = sized(7, 1)
CONFIG = {"llm.api_type": "offline"} | sized({}, {"execution.zygote": False})
PATIENCE_S = 30.0
BARE = [sys.executable, "-c", "pass"]
IMPORT = [sys.executable, "-c", "import taskweaver"]
MEMORY = [sys.executable, "-c", "import taskweaver.memory.branched"]
STORE = [sys.executable, "-c", "from taskweaver.memory.branched import BranchedMemory"]
HELP = [sys.executable, "-m", "taskweaver", "--help"]
CHAT = [sys.executable, "-m", "taskweaver"]
PROMPT = b">\x1b"
ROOT = Path(__file__).parent.parent


def run() -> dict[str, float]:
    """Return medians in seconds: ``bare``, those of the imports, ``help``, ``prompt``."""
    jobs = {"bare": BARE, "import": IMPORT, "memory": MEMORY, "store": STORE, "help": HELP}
    times: dict[str, list[float]] = {name: [] for name in (*jobs, "prompt")}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "taskweaver_config.json").write_text(json.dumps(CONFIG))
        for _ in range(ROUNDS):
            for name, command in jobs.items():
                times[name].append(_duration(command))
            times["prompt"].append(_time_to_prompt([*CHAT, "-p", folder]))
    return {name: statistics.median(values) for name, values in times.items()}


def _duration(command: list[str]) -> float:
    since = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return perf_counter() - since


def _time_to_prompt(command: list[str]) -> float:
    """Start a chat on a terminal of its own; return the seconds until the prompt is drawn."""
    terminal, other_end = pty.openpty()
    termios.tcsetwinsize(other_end, (40, 100))
    since = perf_counter()
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(other_end)
    try:
        _read_until(terminal, PROMPT)
        return perf_counter() - since
    finally:
        os.write(terminal, b"\x04")
        _read_until(terminal, None)
        child.wait(PATIENCE_S)
        os.close(terminal)


def _read_until(terminal: int, wanted: bytes | None) -> None:
    """Read what is drawn until `wanted` appears, or until the other end closes.

    Raises:
        TimeoutError: If neither happens.
    """
    drawn = b""
    while wanted is None or wanted not in drawn:
        if not select.select([terminal], [], [], PATIENCE_S)[0]:
            raise TimeoutError(f"waited {PATIENCE_S} s; on the screen: {drawn[-200:]!r}")
        try:
            read = os.read(terminal, 65536)
        except OSError:
            read = b""
        if not read:
            return
        # A program may ask where the cursor is before it draws.
        if b"\x1b[6n" in read:
            os.write(terminal, b"\x1b[1;1R")
        drawn += read


def show(figures: dict[str, float]) -> None:
    """Print the table."""
    medians = dict(figures)
    bare = medians.pop("bare")
    print(f"bare interpreter  {bare * 1000:6.0f} ms")
    goals = {
        "import": "+150 ms",
        "memory": "+30 ms",
        "store": "+60 ms",
        "help": "+150 ms",
        "prompt": "500 ms in all",
    }
    for name, seconds in medians.items():
        beyond = (seconds - bare) * 1000
        print(f"{name:16}  {seconds * 1000:6.0f} ms  +{beyond:.0f} ms  (goal {goals[name]})")


if __name__ == "__main__":
    show(run())
