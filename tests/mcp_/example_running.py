"""The example server, as tests run it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVER = str(Path(__file__).with_name("example_server.py"))
RUNNING = re.compile(r"running on (http://[\d.]+:\d+)")


def stdio(**fields: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER], **fields}


@contextmanager
def http_server(cwd: Path | None = None) -> Iterator[dict[str, Any]]:
    command = [sys.executable, SERVER, "http", "0"]  # the system gives it a port that is free
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd
    ) as process:
        try:
            assert process.stderr is not None
            found = map(RUNNING.search, process.stderr)
            address = next((match[1] for match in found if match), None)
            assert address is not None, "the server ended before it was ready"
            yield {"url": f"{address}/mcp", "pid": process}
        finally:
            process.kill()
