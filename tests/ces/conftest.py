"""Kernels to try things on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import LIMITS

from taskweaver.ces.common import Client
from taskweaver.ces.manager import code_execution_service_factory


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    folder = tmp_path_factory.mktemp("shared")
    manager = code_execution_service_factory(folder, limits=LIMITS)
    client = manager.get_session_client("shared", cwd=folder / "cwd")
    client.execute_code("0", "1")
    yield client, folder / "cwd"
    manager.clean_up()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Client]:
    manager = code_execution_service_factory(tmp_path, limits=LIMITS)
    yield manager.get_session_client("fresh", cwd=tmp_path / "cwd")
    manager.clean_up()
