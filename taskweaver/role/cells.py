"""The seam between a role that leads and the role that runs its cells."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from taskweaver.memory.memory import Memory


@runtime_checkable
class CellRunner(Protocol):
    """A role that runs cells that another role wrote."""

    alias: str

    @property
    def language(self) -> str:
        """Language of its cells."""
        ...

    @property
    def has_own_model(self) -> bool:
        """Whether a further model is configured to write its cells."""
        ...

    def cell_guide(self, memory: Memory) -> str:
        """Return what an author of cells has to know: the kernel, its rules, its functions."""
        ...
