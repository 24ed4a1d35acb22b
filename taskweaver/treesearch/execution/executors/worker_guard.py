"""A process that outlives the owner of worker processes, and ends what they left.

When the owner is killed, the system kills its workers, but not the programs they started: a program
with a session of its own survives, and so does bubblewrap in a moment of its start. This process
waits for the end of its input, which the owner alone holds open, and then kills every process whose
environment carries a mark of the owner's workers. It runs by itself, without this package: its
argument is the beginning of the entry in their environment.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_ROUNDS = 10  # a process that is just forked by one that is killed may be missed


def kill_marked(entry: bytes) -> bool:
    """Kill the processes whose environment has an entry that begins so; return if any had."""
    found = False
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is gone, or of another user
            handle = os.pidfd_open(int(place.name))
            try:
                entries = (place / "environ").read_bytes().split(b"\0")
                if any(one.startswith(entry) for one in entries):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found = True
            finally:
                os.close(handle)
    return found


def main() -> None:
    """Wait for the end of the owner, then kill all that carries its mark."""
    while os.read(0, 1):
        pass
    for _ in range(_ROUNDS):
        if not kill_marked(sys.argv[1].encode()):
            break


if __name__ == "__main__":
    main()
