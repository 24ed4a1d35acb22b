"""A worker process: runs the calls it receives until the owner is gone.

Its argument is the file descriptor of a connection to `worker_pool.WorkerPool`. Both ends are this
package's own; experiments never see the connection, so pickled data is as trusted as the code.
"""

from __future__ import annotations

import ctypes
import pickle
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from taskweaver.treesearch.errors import NotTransferable, SearchError
from taskweaver.treesearch.execution.timing import host_turn

_PR_SET_PDEATHSIG = 1
TURN = b"turn"
"""Asks for the turn at this host, for the next call; it is answered when that begins."""


class WorkerReply(NamedTuple):
    """Outcome of a call: its return value, or its exception with the traceback."""

    value: Any = None
    error: Exception | None = None
    trace: str = ""


def main() -> None:
    """Serve until the owner closes the connection, or ends."""
    if sys.platform == "linux":
        # The thread that started this process lives as long as it should.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with Connection(int(sys.argv[1])) as owner:
        sys.path[:] = pickle.loads(owner.recv_bytes())  # noqa: S301 - see above
        while True:
            try:
                call = owner.recv_bytes()
            except EOFError:
                return
            owner.send_bytes(_in_turn(owner) if call == TURN else _packed(_answer(call)))


def _in_turn(owner: Connection) -> bytes:
    """Return the reply to the next call, which is made in the turn at this host."""
    try:
        with host_turn():
            owner.send_bytes(TURN)
            return _packed(_answer(owner.recv_bytes()))
    except SearchError as error:
        owner.send_bytes(TURN)
        owner.recv_bytes()
        return _packed(WorkerReply(error=error))


def _answer(call: bytes) -> WorkerReply:
    try:
        function, args = pickle.loads(call)  # noqa: S301 - see above
    except Exception as error:  # noqa: BLE001 - classes decide themselves what they raise here
        return WorkerReply(error=NotTransferable(f"The job cannot be read in a worker: {error!r}."))
    try:
        return WorkerReply(function(*args))
    except Exception as error:  # noqa: BLE001 - it is the caller's to handle
        return WorkerReply(error=error, trace=traceback.format_exc())
    except BaseException as error:  # noqa: BLE001 - a job that exits must not end its caller
        text = f"The job ended with {error!r}."
        return WorkerReply(error=NotTransferable(text), trace=traceback.format_exc())


def _packed(reply: WorkerReply) -> bytes:
    """Return a reply that can be read; one that could not becomes an error that says so."""
    try:
        data = pickle.dumps(reply)
        if reply.error is not None:
            pickle.loads(data)  # noqa: S301 - an error may be written and still not be read
    except Exception as problem:  # noqa: BLE001 - classes decide themselves what they raise here
        what = "What the job returned" if reply.error is None else f"The error {reply.error!r}"
        text = f"{what} cannot travel between processes: {problem!r:.300}."
        return pickle.dumps(WorkerReply(error=NotTransferable(text), trace=reply.trace))
    return data
