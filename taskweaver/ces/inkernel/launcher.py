"""Starts the kernel process: ``python -m <this> CONNECTION_FILE PARENT_PID MEMORY OUTPUT``."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run a kernel until it is told to stop or its owner is gone."""
    file, parent, memory, output = sys.argv[1], *map(int, sys.argv[2:5])
    _tie_to(parent)
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    from taskweaver.ces.inkernel.kernel import make_app

    app = make_app(file, output)
    sys.path.append(os.getcwd())  # noqa: PTH109 - a text is what sys.path holds
    app.start()


def _tie_to(parent: int) -> None:
    """Have the system kill this process when its owner ends, and adopt orphaned grandchildren.

    Where there is no such call, ipykernel's own watch on its parent remains.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the owner of this kernel has ended")


if __name__ == "__main__":
    main()
