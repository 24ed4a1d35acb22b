"""Ports of loopback for tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port that no program listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
