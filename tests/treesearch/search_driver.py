"""A program that begins or goes on with a search, for tests that end it the hard way."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from search_lab import Climber, opened

from taskweaver.treesearch.execution.machine import collect_environment, copy_rate


def drive(
    project: Path, settings: Mapping[str, Any], kills: Sequence[tuple[int, float]]
) -> list[int]:
    """Work on the run of a project in one process after the other; kill each.

    It is killed after the run went on as often as given, and some seconds later. Return exit codes.
    """
    ran = subprocess.run(
        [sys.executable, __file__, str(project), json.dumps(settings)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input="".join(f"{steps} {delay}\n" for steps, delay in kills),
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in ran.stdout.split()]


def work(project: Path, settings: dict[str, Any]) -> None:
    """Work on the one run of a project; print a line whenever it went on."""
    is_begun = (project / "experiments/run/journal.jsonl").exists()
    own = {} if is_begun else settings
    with opened(project, Climber(), resume=is_begun, **own) as search:
        search.run(lambda _: print("on", flush=True))


def main(project: Path, settings: dict[str, Any]) -> None:
    """Work in a new process for each line, and kill it; print its exit code."""
    copy_rate()  # measured once for all, and asked for once
    collect_environment()
    for line in sys.stdin:
        steps, delay = line.split()
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(theirs, 1)
            work(project, settings)
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as said:
            for _ in range(int(steps)):
                said.readline()
            ending = os.pidfd_open(pid)
            if not select.select([ending], [], [], float(delay))[0]:
                os.kill(pid, signal.SIGKILL)
            os.close(ending)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
