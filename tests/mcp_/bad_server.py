"""What is no MCP server: ``python bad_server.py HOW``."""

from __future__ import annotations

import sys
import threading


def main(how: str) -> None:
    """Be bad."""
    if how == "dies":
        sys.stderr.write("cannot open the database\n")
        sys.exit(1)
    while how == "garbage":
        print("hello, I am no protocol", flush=True)
        threading.Event().wait(0.05)
    threading.Event().wait(1000)


if __name__ == "__main__":
    main(sys.argv[1])
