"""Kernels to try things on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kernels import LIMITS, Managers, Started, run, warmed

from taskweaver.ces.common import Client, Manager
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import KernelManager, code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy


@pytest.fixture
def managers(tmp_path: Path) -> Iterator[Managers]:
    """Opens owners of kernels, which end with the test; more arguments are limits."""
    with ExitStack() as stack:

        def opened(
            name: str = "env",
            policy: SandboxPolicy | None = None,
            *,
            is_warm: bool = False,
            limits: KernelLimits = LIMITS,
            **changed: Any,
        ) -> KernelManager:
            manager = code_execution_service_factory(
                tmp_path / name, limits=replace(limits, **changed), is_warm=is_warm, sandbox=policy
            )
            stack.callback(manager.clean_up)
            return manager

        yield opened


@pytest.fixture
def started(managers: Managers) -> Started:
    """Opens a session whose kernel has limits of its own."""
    return lambda **limits: managers(**limits).get_session_client("s")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    folder = tmp_path_factory.mktemp("shared")
    manager = code_execution_service_factory(folder, limits=LIMITS)
    client = manager.get_session_client("shared", cwd=folder / "cwd")
    run(client, "1")
    yield client, folder / "cwd"
    manager.clean_up()


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """A manager with a template, as an application has it; it runs before the first test."""
    with warmed(tmp_path_factory.mktemp("warm"), LIMITS) as manager:
        yield manager


@pytest.fixture
def fresh(warm: Manager, tmp_path: Path) -> Iterator[Client]:
    client = warm.get_session_client(str(tmp_path), session_dir=tmp_path, cwd=tmp_path / "cwd")
    yield client
    client.stop()
