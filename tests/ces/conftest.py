"""Kernels to try things on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import LIMITS, warmed

from taskweaver.ces.common import Client, Manager
from taskweaver.ces.manager import code_execution_service_factory


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    folder = tmp_path_factory.mktemp("shared")
    manager = code_execution_service_factory(folder, limits=LIMITS)
    client = manager.get_session_client("shared", cwd=folder / "cwd")
    client.execute_code("0", "1")
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
