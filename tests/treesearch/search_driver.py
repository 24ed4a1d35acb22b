"""A program that begins or goes on with a search, for tests that end it the hard way."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path

from search_lab import FAST, Climber

from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.execution.machine import collect_environment, copy_rate
from taskweaver.treesearch.service import resume_search, runs, start_search


def work(project: Path, settings: dict[str, object]) -> None:
    """Work on the one run of a project; print a line whenever it went on."""
    with TaskWeaverApp(project, model=Climber()) as app:
        known = runs(app)
        if known:
            search = resume_search(app, "run")
        else:
            search = start_search(app, project / "idea.md", FAST | settings, name="run")
        with search:
            search.run(lambda _: print("on", flush=True))


def main(project: Path, settings: dict[str, object]) -> None:
    """Work in a new process for each line, and kill it; what it prints is its exit code.

    A line says how often the run goes on before, and how many seconds later it is killed.
    """
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
    own = json.loads(sys.argv[2])
    main(Path(sys.argv[1]), {f"search.{name}": value for name, value in own.items()})
