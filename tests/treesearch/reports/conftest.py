"""Reports with their figures."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _figures() -> None:
    """Draw the figures: they are looked at here."""
