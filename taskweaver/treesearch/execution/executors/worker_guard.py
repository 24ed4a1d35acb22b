"""A process that outlives the owner of worker processes, and ends what they left.

When the owner is killed, the system kills its workers, but not the programs they started: a program
with a session of its own survives, and so does bubblewrap in a moment of its start. This process
waits for the end of its input, which the owner alone holds open, and then kills every process whose
environment carries a mark of the owner's workers. It runs by itself, without this package: its
argument is the beginning of the entry in their environment. Each run starts one, so it imports next
to nothing: `pathlib`, `contextlib` and `signal` would take twice as long as all else it does.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of
import os
import sys

# A look may miss what was just forked by one that is gone: two in a row find nothing.
_ROUNDS, _QUIET_ROUNDS = 10, 2


def kill_marked(entry: bytes) -> bool:
    """Kill the processes whose environment has an entry that begins so; return if any had."""
    found = False
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            try:
                found |= _kill_if_marked(int(name), entry)
            except OSError:
                continue  # it is gone, or of another user
    return found


def _kill_if_marked(pid: int, entry: bytes) -> bool:
    handle = os.pidfd_open(pid)
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            entries = file.read().split(b"\0")
        is_marked = any(one.startswith(entry) for one in entries)
        if is_marked:
            _signal.pidfd_send_signal(handle, _signal.SIGKILL)
        return is_marked
    finally:
        os.close(handle)


def main() -> None:
    """Wait for the end of the owner, then kill all that carries its mark."""
    while os.read(0, 1):
        pass
    quiet = 0
    for _ in range(_ROUNDS):
        quiet = 0 if kill_marked(sys.argv[1].encode()) else quiet + 1
        if quiet == _QUIET_ROUNDS:
            break


if __name__ == "__main__":
    main()
