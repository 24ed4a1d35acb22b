"""The example server, as tests run it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVER = str(Path(__file__).with_name("example_server.py"))


def stdio(*how: str, **fields: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, *how], **fields}


@contextmanager
def http_server(headers: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, SERVER, "http", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "running on" in line:
                break
        try:
            yield {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers or {}, "pid": process}
        finally:
            process.kill()
