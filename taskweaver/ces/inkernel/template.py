"""A template: a sleeping process that forks kernels on request.

There are two kinds. A warm one has the usual libraries and nothing else; new sessions start from
it. A snapshot is a fork of a running kernel and has its variables; branches start from it. A
template runs neither the user's nor the model's code and has one thread, so forking it is always
safe.

Each request is a line of JSON with the fields of a `ForkRequest`. For each of its kernels that
ended, the template sends a line with its exit code: ``{"pid": 12, "code": -9}``. The request
``{"enter": ...}``, with the fields of an `Entry` and a handle of the anchor, forks a template that
enters a sandbox. It ends when the connection does.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import socket
import sys
from typing import Any

from taskweaver.ces.inkernel.forking.rest import close_log_files
from taskweaver.ces.inkernel.process import (
    ForkRequest,
    announce,
    close_memory,
    die_with,
    fork,
    open_memory,
    readable,
)
from taskweaver.ces.inkernel.sandbox.entry import Entry, adopt_orphans, enter

_LINE_BYTES = 1 << 16
_USUAL = ("numpy", "pandas", "matplotlib.pyplot", "taskweaver.ces.inkernel.cell.figures")
# What a kernel imports only while it starts, or in its first round.
_OF_KERNELS = (
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "psutil",
    "tornado.platform.asyncio",
    "taskweaver.ces.inkernel.overview",
    "taskweaver.ces.inkernel.state.transport",
    "taskweaver.tables.profiles.profiling",
)


class Forked(SystemExit):
    """Exit from the event loop that a forked process inherited, to become a kernel.

    Attributes:
        request: Identity, files and folder of the kernel.
        lifeline: Its connection to its owner; it ends when the connection is closed.
    """

    def __init__(self, request: ForkRequest, lifeline: socket.socket) -> None:
        super().__init__(0)
        self.request = request
        self.lifeline = lifeline


def snapshot(request: ForkRequest) -> int:
    """Fork a template off this kernel. Only the kernel returns, with the template's process id.

    Raises:
        Forked: In each kernel that the template forks.
        OSError: If the system has no room for another process.
    """
    numbers = random.getstate()
    close_log_files()  # again: a record may have been written since the fork was allowed
    pid, connection = fork(request, is_template=True)
    if connection is None:
        return pid
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    forked = serve(connection)
    # A fork reseeds the generator; this one goes on where its parent stood.
    random.setstate(numbers)
    raise forked


def wait_as_template(path: str, *, is_warm: bool) -> Forked:
    """Serve as a template. Only forked kernels return.

    With `is_warm` it imports the usual libraries first.
    """
    for name in (*_USUAL, *_OF_KERNELS) if is_warm else _OF_KERNELS:
        try:
            __import__(name)
        except ImportError as error:
            sys.stderr.write(f"{name} is not there to be kept warm: {error}\n")
    gc.freeze()  # what all kernels share is for none of them to look through, and to copy
    close_memory()
    forked = serve(announce(ForkRequest(path, "", "")))
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()  # or all sessions would draw the same numbers
    return forked


def serve(connection: socket.socket) -> Forked:
    """Fork a kernel for each request. Only forked kernels return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the wait below
    request, handles, kernels = b"", list[int](), set[int]()
    while True:
        for source in readable([connection, woken]):
            if source == woken.fileno():
                woken.recv(_LINE_BYTES)
                _tell_ended(connection, kernels)
                continue
            data, received, _, _ = socket.recv_fds(
                connection, _LINE_BYTES, 1, socket.MSG_CMSG_CLOEXEC
            )
            if not data:
                os._exit(0)
            request += data
            handles += received
            while b"\n" in request:
                line, _, request = request.partition(b"\n")
                asked = json.loads(line)
                if "enter" in asked:
                    forked = _admit(Entry(**asked["enter"]), handles)
                else:
                    forked = _fork_kernel(ForkRequest(**asked), kernels)
                if forked is not None:
                    return forked


def _admit(entry: Entry, handles: list[int]) -> Forked | None:
    """Fork a template that enters a sandbox. The result is None outside of forked kernels."""
    anchor = handles.pop(0) if handles else None
    adopt_orphans()
    try:
        pid = os.fork()
    except OSError as error:
        announce(entry, str(error.strerror)).close()
        pid = -1
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return serve(enter(entry, anchor))
    if anchor is not None:
        os.close(anchor)
    return None


def _fork_kernel(request: ForkRequest, kernels: set[int]) -> Forked | None:
    """Fork one kernel. The result is None outside of the kernel."""
    try:
        pid, lifeline = fork(request)
    except OSError as error:
        announce(request, str(error.strerror)).close()
        return None
    if lifeline is None:
        kernels.add(pid)
        return None
    open_memory()
    signal.set_wakeup_fd(-1)
    die_with(lifeline)
    return Forked(request, lifeline)


def _tell_ended(connection: socket.socket, kernels: set[int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        if pid in kernels:
            kernels.remove(pid)
            message = json.dumps({"pid": pid, "code": os.waitstatus_to_exitcode(status)})
            try:
                connection.sendall(message.encode() + b"\n")
            except OSError:
                os._exit(0)  # the owner is gone
