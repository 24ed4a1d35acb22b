"""What is no MCP server: ``python bad_server.py HOW``."""

from __future__ import annotations

import sys
import threading

how = sys.argv[1]
if how == "dies":
    sys.exit("cannot open the database")
while how == "garbage":
    print("hello, I am no protocol", flush=True)
    threading.Event().wait(0.05)
threading.Event().wait(1000)
