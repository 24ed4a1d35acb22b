"""Kernels start as their application asks."""

from __future__ import annotations

from contextlib import nullcontext


class WarmKernels:
    """Nothing is shared."""

    pids = frozenset[int]()

    def in_use(self) -> nullcontext[None]:
        return nullcontext()


def lean_templates() -> nullcontext[None]:
    return nullcontext()
