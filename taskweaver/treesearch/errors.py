"""What can go wrong around a search. A node that fails is a result, not an error."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class SearchError(TaskWeaverError):
    """A search cannot do what was asked.

    Attributes:
        detail: What happened.
        hint: What to do about it.
    """

    def __init__(self, detail: str, hint: str = "") -> None:
        super().__init__(detail, hint)
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        """What happened, and what to do."""
        return f"{self.detail} {self.hint}".strip()


class RunInUse(SearchError):
    """Another process works on the run."""


class WorkerLost(SearchError):
    """A worker process died, or did not come back in time, and took its job with it."""


class NotTransferable(SearchError):
    """A job, what it returned, or what it raised cannot travel between processes."""


class PhasePlanError(SearchError):
    """What a model proposed cannot be carried out as it is written.

    Attributes:
        place: Where in it, such as ``coding.workspace.files[0].path``.
        problem: What is wrong there.
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
