"""What the tests of kernels share."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from patience import PATIENCE_S
from sizes import forks

from taskweaver.ces.common import Client, ExecutionResult, Manager
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import KernelManager, code_execution_service_factory

FORKS = forks(1)
"""How often a test of live forks forks; `make long` does it twenty times."""
needs_thread_owners = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="the libraries of native threads are known on x86-64 with glibc alone",
)
LIMITS = replace(KernelLimits.default(), cell_timeout_s=PATIENCE_S)


def limited(tmp_path: Path, **limits: float | int) -> KernelManager:
    manager = code_execution_service_factory(tmp_path, limits=replace(LIMITS, **limits))  # type: ignore[arg-type]
    assert isinstance(manager, KernelManager)
    return manager


@contextmanager
def warmed(folder: Path, limits: KernelLimits) -> Iterator[Manager]:
    """Give an owner of kernels whose template is up, so that no test waits for it."""
    manager = code_execution_service_factory(folder, limits=limits, is_warm=True)
    first = manager.get_session_client("first")
    run(first, "1")
    first.stop()
    yield manager
    manager.clean_up()


def run(client: Client, code: str) -> ExecutionResult:
    return client.execute_code("x", code)


def answers(client: Client) -> bool:
    return run(client, "20 + 1").output == 21


def forked(manager: Manager, client: Client, name: str) -> Client:
    """Return a fork of a live kernel."""
    snapshot = client.snapshot()
    try:
        return manager.fork_session_client(snapshot, name)
    finally:
        snapshot.close()
