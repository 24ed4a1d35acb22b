"""Searches whose figures are not the subject."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from search_figures import bare_figures


@pytest.fixture(autouse=True, scope="module")
def _figures() -> Iterator[None]:
    """Draw nothing in the figures of reports: drawing them costs as much as ten attempts."""
    with bare_figures():
        yield
