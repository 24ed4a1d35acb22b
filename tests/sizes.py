"""How much a test does: less by `make quick`, more by `make long`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import hypothesis

_Case = TypeVar("_Case")

EXAMPLES = 50
"""How many examples a property that names no number is tried with in the gate."""


def forks(number: int) -> int:
    """Return how often a test of live forks forks, given its number in the gate."""
    return int(os.environ.get("FORKS", number))


def examples(number: int) -> int:
    """Return how many examples a property is tried with, given their number in the gate."""
    return max(1, number * hypothesis.settings().max_examples // EXAMPLES)


def is_long() -> bool:
    """Return whether tests run at full size, as by `make long`."""
    return hypothesis.settings().max_examples > EXAMPLES


def some(cases: Sequence[_Case], number: int) -> Sequence[_Case]:
    """Return the first cases of a test that shows the same with each; `make long` has all."""
    return cases if is_long() else cases[:number]


def spread(cases: Sequence[_Case], step: int) -> list[_Case]:
    """Return the cases with each one after so many first, so that `some` takes from all parts."""
    return [case for first in range(step) for case in cases[first::step]]
