"""How much a test does: less by `make quick`, more by `make long`."""

from __future__ import annotations

import hypothesis


def examples(number: int) -> int:
    """Return how many examples a property is tried with, given their number in the gate."""
    return max(1, number * hypothesis.settings().max_examples // 100)
