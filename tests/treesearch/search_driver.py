"""A program that begins or goes on with a search, for tests that end it the hard way."""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

from search_lab import FAST, Climber

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.searching import resume_search, runs, start_search


def work(project: Path, settings: dict[str, object]) -> None:
    """Work on the one run of a project; say when that begins."""
    with TaskWeaverApp(project, model=Climber()) as app:
        known = runs(app)
        if known:
            search = resume_search(app, "run")
        else:
            search = start_search(app, project / "idea.md", FAST | settings, name="run")
        with search:
            print("begun", flush=True)
            search.run(lambda _: None)


def main(project: Path, settings: dict[str, object]) -> None:
    """For each line, a time in seconds, work in a new process, and kill it after that time."""
    for line in sys.stdin:
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(theirs, 1)
            work(project, settings)
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as said:
            said.readline()
            ending = os.pidfd_open(pid)
            if not select.select([ending], [], [], float(line))[0]:
                os.kill(pid, signal.SIGKILL)
            os.close(ending)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), {"search.seed": int(sys.argv[2])})
