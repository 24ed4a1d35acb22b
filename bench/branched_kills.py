"""Writers killed with SIGKILL while they write: what of their acknowledged writes is still there.

``python -m bench.branched_kills 1000`` kills a thousand writers of one file, one after another;
without a number it kills fifty. The exit status is 1 if a write is lost or the file is unsound.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.common import show, sized
from taskweaver.memory.branched import MemoryConfig, MemoryManager

KILLS = sized(50, 1)
QUIET = MemoryConfig(memory_log_enabled=False)
WRITER = """
import sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager
with MemoryManager(sys.argv[1], MemoryConfig(memory_log_enabled=False)) as memory:
    branch = memory.fork("root", sys.argv[2])
    for n in range(1_000_000):
        id_ = memory.write_archival(branch, f"record {n} of {branch}")
        memory.write_event(branch, "step", f"event {n}")
        print(id_, flush=True)
"""


def run(kills: int = KILLS) -> dict[str, float]:
    """Return how many writes were acknowledged, how many of them are lost, and what is unsound."""
    rng = random.Random(0)
    acknowledged = lost = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "killed.sqlite"
        with MemoryManager(path, QUIET) as memory:
            memory.create_branch(None, branch_id="root")
            for number in range(kills):
                name = f"k{number}"
                told = _killed(path, name, rng.randint(1, 20))
                kept = {str(record.id) for record in memory[name].records()}
                acknowledged += len(told)
                events = sum(event.count for event in memory[name].events())
                lost += len(set(told) - kept) + max(0, len(told) - events)
            problems = len(memory.verify().problems)
    return {
        "kills": float(kills),
        "acknowledged": float(acknowledged),
        "lost": float(lost),
        "problems": float(problems),
    }


def _killed(path: Path, name: str, lines: int) -> list[str]:
    """Let a writer write, kill it, and return what it said was written."""
    command = [sys.executable, "-c", WRITER, str(path), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().splitlines(keepends=True)
    return [line.strip() for line in told if line.endswith("\n")]


if __name__ == "__main__":
    figures = run(int(sys.argv[1]) if len(sys.argv) > 1 else KILLS)
    show(figures)
    sys.exit(figures["lost"] > 0 or figures["problems"] > 0)
