"""Processes that save and load namespaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ces.state import trips


@pytest.fixture(scope="module")
def warm_trips() -> Iterator[None]:
    """Fork the processes that save and load; where imports are the subject, they start.

    Their environment has a variable that cells remove.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REMOVED_HERE", "yes")
        with trips.warm():
            yield
