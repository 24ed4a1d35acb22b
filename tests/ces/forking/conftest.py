"""Kernels of which the start is not the subject."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from warm_kernels import WarmKernels


@pytest.fixture(autouse=True, scope="module")
def _kernels_start_warm(_warm_kernels: WarmKernels) -> Iterator[None]:
    """Fork kernels from a warm process that the tests here share, as an application does."""
    with _warm_kernels.in_use():
        yield
