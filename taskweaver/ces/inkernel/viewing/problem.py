"""A request for a view that cannot be fulfilled."""

from __future__ import annotations


class ViewProblem(Exception):
    """A view that cannot be had; its text is for the client.

    Attributes:
        kind: ``missing``, ``invalid``, or ``slow``.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
