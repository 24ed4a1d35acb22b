"""``python -m taskweaver`` and the ``taskweaver`` command."""

from __future__ import annotations

from taskweaver.cli.main import commands


def main() -> None:
    """Run the command line."""
    commands(prog_name="taskweaver")


if __name__ == "__main__":
    main()
