"""A process that outlives the owner of worker processes, and ends what they left.

When the owner is killed, the system kills its workers, but not the programs they started: a program
with a session of its own survives, and so does bubblewrap in a moment of its start. This process
waits for its input, which the owner alone holds open: a byte is an orderly end. At the end without
one it kills every process whose environment carries a mark of the owner's workers. Its arguments
are the beginning of these marks, and the owner's ``sys.path``. Each run starts one, so it imports
this package only once there is something to do.
"""

import os
import sys


def main() -> None:
    """Wait for the end of the owner, then kill all that carries a mark of its workers."""
    if os.read(0, 1):
        return
    sys.path[:] = sys.argv[2:]
    from taskweaver.ces.environment import WORKER_MARK
    from taskweaver.ces.process.marked import kill_all_marked

    kill_all_marked(sys.argv[1], WORKER_MARK, is_prefix=True)


if __name__ == "__main__":
    main()
