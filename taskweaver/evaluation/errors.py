"""Errors of an evaluation."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class EvaluationError(TaskWeaverError):
    """Cases or results cannot be used.

    Attributes:
        source: The file, the case, or a place in it.
        problem: The problem with it.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        """Return the place and the problem."""
        return f"{self.source}: {self.problem}"


class CaseFailed(EvaluationError):
    """A case cannot be played to its end; other cases are not affected."""
