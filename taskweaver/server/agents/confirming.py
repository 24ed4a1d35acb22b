"""Confirmations of a session that clients answer, by branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taskweaver.module.confirmation import (
    AnsweredElsewhere,
    Confirmation,
    ConfirmationReply,
    ConfirmationRequest,
    NotConfirmed,
)
from taskweaver.module.event_emitter import current_branch
from taskweaver.utils.text import shorten

_SHOWN_CHARS = 300


class ClientConfirmations(AnsweredElsewhere):
    """Requests for confirmation that wait for a client's answer.

    Attributes:
        silent: Branches that answer a client which cannot confirm.
        refused: The newest reason for which no client was asked, or none answered, by branch.
    """

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.silent: set[str] = set()
        self.refused: dict[str, str] = {}
        self._session_id = session_id
        self._watchers = 0
        self._branches: dict[str, str] = {}
        self._is_closed = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count a client that can see and answer requests, inside the block."""
        self._watchers += 1
        try:
            yield
        finally:
            self._watchers -= 1

    def expect(self, request: ConfirmationRequest) -> None:
        """Take an answer to a request from now on. After the end of the session the answer is no.

        Raises:
            NotConfirmed: If the client of the branch cannot confirm, and none that can watches.
        """
        branch, is_new = current_branch(), request.id not in self._branches
        if is_new and branch in self.silent and not self._watchers:
            raise self._refusal(branch, request, "nobody was asked")
        self._branches.setdefault(request.id, branch)
        super().expect(request)
        if self._is_closed:
            self.provide_confirmation(request.id, Confirmation.no)

    def _refusal(self, branch: str, request: ConfirmationRequest, what: str) -> NotConfirmed:
        self.refused[branch] = (
            f"the program that sent this message cannot confirm code, so {what}. Ask"
            f" again where you can be asked, in session {self._session_id}: on the page"
            f" (taskweaver web), in a terminal (taskweaver --resume {self._session_id}), or by"
            f" the agent API. To be allowed was: {shorten(request.content, _SHOWN_CHARS)}"
        )
        return NotConfirmed(self.refused[branch])

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> ConfirmationReply | None:
        """Wait for the answer to this request.

        Raises:
            NotConfirmed: If the client of the branch cannot confirm, and none that can answers.
        """
        try:
            answer = super().request_confirmation(request, timeout_s)
            branch = self._branches.get(request.id, "")
            if answer is None and branch in self.silent:
                raise self._refusal(branch, request, "others were asked, and nobody answered")
            return answer
        finally:
            self._branches.pop(request.id, None)

    def waiting(self) -> list[tuple[str, ConfirmationRequest]]:
        """Return the requests that wait, each with the branch."""
        with self._changed:
            requests = list(self.requests.values())
        return [(self._branches.get(request.id, ""), request) for request in requests]

    def refuse(self, branch: str) -> None:
        """Refuse what waits on a branch."""
        for name, request in self.waiting():
            if name == branch:
                self.provide_confirmation(request.id, Confirmation.no)

    def close(self) -> None:
        """Refuse all that waits or comes."""
        self._is_closed = True
        for _, request in self.waiting():
            self.provide_confirmation(request.id, Confirmation.no)
