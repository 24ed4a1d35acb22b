"""A project of a test's own, and sessions that tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kept_sessions import KeptSessions
from support import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without a table, which would start a kernel."""
    return make_project(tmp_path / "project", has_table=False)


@pytest.fixture(scope="module")
def kept_sessions(
    no_states: None, nothing_left_by_file: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeptSessions]:
    """Sessions that go on through the tests of a file, without states of their kernels."""
    with ExitStack() as stack:
        yield KeptSessions(tmp_path_factory.mktemp("kept"), stack)
