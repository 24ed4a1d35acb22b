"""``python -m taskweaver`` and the ``taskweaver`` command."""

from __future__ import annotations

import gc

from taskweaver.cli.main import commands


def main() -> None:
    """Run the command line."""
    try:
        commands(prog_name="taskweaver")
    finally:
        gc.freeze()  # what is left goes with the process; to look through it takes a while


if __name__ == "__main__":
    main()
