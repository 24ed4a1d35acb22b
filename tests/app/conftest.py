"""Sessions that tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kept_sessions import KeptSessions


@pytest.fixture(scope="module")
def kept_sessions(
    no_states: None, nothing_left_by_file: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeptSessions]:
    """Sessions that go on through the tests of a file, without states of their kernels."""
    with ExitStack() as stack:
        yield KeptSessions(tmp_path_factory.mktemp("kept"), stack)
