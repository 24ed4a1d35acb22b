"""``python -m taskweaver`` and the ``taskweaver`` command."""

from __future__ import annotations

import gc
import sys

from taskweaver.utils.system.platform import UnsupportedPlatform, require_supported


def main() -> None:
    """Run the command line."""
    try:
        require_supported()
    except UnsupportedPlatform as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    from taskweaver.cli.main import commands

    try:
        commands(prog_name="taskweaver")
    finally:
        gc.freeze()  # what is left goes with the process; to look through it takes a while


if __name__ == "__main__":
    main()
