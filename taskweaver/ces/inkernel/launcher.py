"""Program of a process that becomes a kernel or a template: bounds, then the work.

``python -m <this> KIND PLACE PARENT_PID OUTPUT [PROCESSES FILE_BYTES CPU_S OPEN_FILES]``: KIND is
``kernel``, and PLACE its connection file; or ``template``, and PLACE the socket at which it is
expected; ``warm`` is a template with the usual libraries. PARENT_PID is 0 where a namespace ends
the processes by itself. A kernel of a template's goes through here too, in the forked process.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

from taskweaver.ces.inkernel.process import BASE, set_limits
from taskweaver.utils.system.platform import SYSTEM

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run a kernel until stopped by the owner, or until the owner's end."""
    kind, place = sys.argv[1:3]
    parent, output, *limits = map(int, sys.argv[3:])
    sys.argv[:] = ["cell"]  # parsers of arguments in cells find none, and name it in their help
    if parent:
        _tie_to(parent)
    set_limits(*limits)
    gc.disable()  # what is imported stays: there is nothing to collect in it
    _leave_out_debugger()
    from taskweaver.ces.inkernel.application import make_app
    from taskweaver.ces.inkernel.template import Forked, wait_as_template

    app: Any = None
    forked: Forked | None = None
    if kind == "kernel":
        app = make_app(place, output)
    else:
        forked = wait_as_template(place, is_warm=kind == "warm")
    gc.enable()
    sys.path.append(os.getcwd())  # noqa: PTH109 - a text is what sys.path holds
    while True:
        if forked is not None:
            request, lifeline = forked.request, forked.lifeline  # noqa: F841 - open as long as this process lives
            _enter_directory(request.cwd, request.kernel_id)
            app = make_app(request.connection_file, output, app)
        try:
            app.start()
        except Forked as again:
            forked = again
        else:
            _end()


def _leave_out_debugger() -> None:
    """Hide debugpy, a fifth of a start, from ipykernel."""
    modules: dict[str, Any] = sys.modules
    modules["debugpy"] = None
    import ipykernel.debugger  # noqa: F401

    del modules["debugpy"]  # a cell may import it


def _end() -> None:
    """End this process: threads, exit functions, open files, then the C library's exit.

    IPython's exit function drops the variables. The interpreter's own end would also take every
    library apart, which copies each page that this process shares with its template.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as `multiprocessing` does
    atexit._run_exitfuncs()  # noqa: SLF001
    gc.collect()
    for thing in gc.get_objects():
        if issubclass(type(thing), io.IOBase):
            with suppress(Exception):  # closed, or its disk is full: nothing is left to report to
                thing.flush()
    ctypes.PyDLL(None).exit(0)


def _enter_directory(cwd: str, kernel_id: str) -> None:
    """Set working directory, import path and environment mark of a forked process."""
    before = os.getcwd()  # noqa: PTH109 - a text is what sys.path holds
    os.chdir(cwd)
    sys.path[:] = [cwd if entry == before else entry for entry in sys.path]
    BASE.move(before, cwd)
    os.environ["TASKWEAVER_KERNEL_ID"] = kernel_id


def _tie_to(parent: int) -> None:
    """Have the system kill this process when the owner ends.

    Where the system cannot, ipykernel's own watch on its parent does that.
    """
    if SYSTEM == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        os.environ["JPY_PARENT_PID"] = str(parent)  # ipykernel looks for it each second
    if os.getppid() != parent:
        raise SystemExit("the owner of this kernel has ended")


if __name__ == "__main__":
    main()
