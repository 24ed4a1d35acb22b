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

# A look may miss what was just forked by one that is gone. So two looks in a row must find nothing,
# or five once something was found; the last one is at all processes.
_LOOKS, _QUIET_LOOKS, _WARY_LOOKS = 20, 2, 5


class _Search:
    """Looks for processes by their environments; each look begins with those that are new.

    So little time passes between the list of processes and a look at one that may fork, and be
    gone, at any moment.
    """

    def __init__(self, entry: bytes) -> None:
        """Prepare it; `entry` is the beginning of an entry in the environments that are meant."""
        self._entry = entry
        self._listed: set[str] = set()
        self._others: set[str] = set()

    def kill(self, *, is_full: bool) -> bool:
        """Kill the processes that are meant; return whether there was any.

        A look that is not full leaves out the processes that an earlier one found not to be meant.
        """
        found = False
        listed = {name for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208
        self._others = set() if is_full else self._others & listed
        present = listed - self._others
        new = present - self._listed
        for name in (*new, *(present - new)):
            try:
                found |= self._kill(name)
            except OSError:
                continue  # it is gone, or of another user
        self._listed = listed
        return found

    def _kill(self, name: str) -> bool:
        """Kill a process that is meant; return whether it is."""
        handle = os.pidfd_open(int(name))
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                environment = file.read()
            if any(entry.startswith(self._entry) for entry in environment.split(b"\0")):
                _signal.pidfd_send_signal(handle, _signal.SIGKILL)
                return True
        finally:
            os.close(handle)
        if environment:  # a process that is about to run a program has none
            self._others.add(name)
        return False


def main() -> None:
    """Wait for the end of the owner, then kill all that carries its mark."""
    while os.read(0, 1):
        pass
    search = _Search(sys.argv[1].encode())
    quiet, enough = 0, _QUIET_LOOKS
    for _ in range(_LOOKS):
        if search.kill(is_full=quiet == enough - 1):
            quiet, enough = 0, _WARY_LOOKS
        else:
            quiet += 1
        if quiet == enough:
            break


if __name__ == "__main__":
    main()
