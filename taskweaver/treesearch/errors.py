"""Errors of a search. A node that fails is a result, not an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taskweaver.errors import RemediedError


class SearchError(RemediedError):
    """A search cannot be opened, or cannot go on."""


@contextmanager
def system_errors(problem: str, hint: str = "") -> Iterator[None]:
    """Raise errors of the system, and of files that cannot be read, as a `SearchError`.

    It has the problem, and the reason of the error.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SearchError(f"{problem}: {reason}.", hint) from error


class RunInUse(SearchError):
    """Another process works on the run."""


class WorkerLost(SearchError):
    """A worker process died, or did not come back in time, and took its job with it."""


class ExecutorLost(SearchError):
    """No job can run any more, or none could from the start. Finished nodes are kept."""


class NotTransferable(SearchError):
    """A job, its result or its error cannot travel between processes."""


class PhasePlanError(SearchError):
    """A proposal that cannot be executed as it is written.

    Attributes:
        place: Place in the proposal, as in ``coding.workspace.files[0].path``.
        problem: The problem there.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}." if place else f"{problem}.")
        self.place = place
        self.problem = problem

    def __reduce__(self) -> tuple[type[PhasePlanError], tuple[str, str]]:
        """Survive pickling: a worker process may raise it."""
        return type(self), (self.place, self.problem)


class ReplyUnusable(SearchError):
    """A model's replies could not be used, as often as it was asked."""
