"""What the tests of kernels share."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from patience import PATIENCE_S
from sizes import forks

from taskweaver.ces.common import Client, ExecutionResult, forkable
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import KernelManager, code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy, Tier
from taskweaver.ces.sandbox import sandbox

FORKS = forks(1)
"""How often a test of live forks forks; `make long` does it twenty times."""
needs_thread_owners = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="the libraries of native threads are known on x86-64 with glibc alone",
)
LIMITS = replace(KernelLimits.default(), cell_timeout_s=PATIENCE_S)


BOXED = replace(LIMITS, process_limit=300, file_limit_bytes=64 << 20)
Managers = Callable[..., KernelManager]
Shared = tuple[Client, Path]
"""A kernel that tests share, and its working directory."""
Started = Callable[..., Kernel]


def _is_available(tier: Tier) -> bool:
    try:
        sandbox.require(tier)
    except SandboxUnavailable:
        if os.environ.get("SANDBOX_REQUIRED"):
            raise
        return False
    return True


TIERS = [tier for tier in get_args(Tier) if _is_available(tier)]
needs_bwrap = pytest.mark.skipif("bwrap" not in TIERS, reason="bubblewrap does not run here")
needs_landlock = pytest.mark.skipif("landlock" not in TIERS, reason="Landlock does not run here")


@contextmanager
def warmed(
    folder: Path, limits: KernelLimits, policy: SandboxPolicy | None = None
) -> Iterator[KernelManager]:
    """Give an owner of kernels whose template is up, so that no test waits for it."""
    manager = code_execution_service_factory(folder, limits=limits, is_warm=True, sandbox=policy)
    first = manager.get_session_client("first")
    run(first, "1")
    first.stop()
    yield manager
    manager.clean_up()


def run(client: Client, code: str) -> ExecutionResult:
    return client.execute_code("x", code)


def answers(client: Client) -> bool:
    return run(client, "20 + 1").output == 21


def forked(client: Client, name: str) -> Client:
    """Return a fork of a live kernel."""
    snapshot = forkable(client).snapshot()
    try:
        return snapshot.fork(name)
    finally:
        snapshot.close()
