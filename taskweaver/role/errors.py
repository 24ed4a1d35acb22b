"""Errors of roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError
from taskweaver.utils.text import did_you_mean


@dataclass(eq=False, repr=False)
class RoleError(TaskWeaverError):
    """A role cannot be used.

    Attributes:
        role: Name of the role, or of the file that describes it.
        problem: The problem.
    """

    role: str
    problem: str

    def __str__(self) -> str:
        """Return the problem with the name of the role."""
        return f"Role {self.role!r}: {self.problem}"


class UnknownRole(RoleError):
    """A role was asked for that is not installed."""

    def __init__(self, role: str, known: Sequence[str] = ()) -> None:
        remedy = did_you_mean(role, known, f"known: {', '.join(known)}.")
        super().__init__(role, f"there is no such role; {remedy}")


class UnusableReply(RoleError):
    """A role's model kept answering in a form that cannot be used."""
