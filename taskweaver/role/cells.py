"""The seam between a role that leads and the role that runs its cells."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from taskweaver.memory.conversation import Conversation
from taskweaver.memory.memory import Memory


@runtime_checkable
class CellRunner(Protocol):
    """A role that runs cells that another role wrote."""

    alias: str
    examples: list[Conversation]

    @property
    def language(self) -> str:
        """Language of its cells."""
        ...

    @property
    def has_own_model(self) -> bool:
        """Whether it takes orders in words: a model or texts of its own are configured."""
        ...

    def cell_guide(self, memory: Memory) -> str:
        """Return what an author of cells has to know: the kernel, its rules, its functions."""
        ...
