"""Confirmations of a session that clients answer, by the branch they belong to."""

from __future__ import annotations

from taskweaver.module.confirmation import (
    AnsweredElsewhere,
    Confirmation,
    ConfirmationReply,
    ConfirmationRequest,
)
from taskweaver.module.events import current_branch


class ClientConfirmations(AnsweredElsewhere):
    """Requests for confirmation that wait for a client's answer."""

    def __init__(self) -> None:
        super().__init__()
        self._branches: dict[str, str] = {}
        self._is_closed = False

    def expect(self, request: ConfirmationRequest) -> None:
        """Take an answer to a request from now on; after the end of the session it is no."""
        self._branches.setdefault(request.id, current_branch())
        super().expect(request)
        if self._is_closed:
            self.provide_confirmation(request.id, Confirmation.no)

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> ConfirmationReply | None:
        """Wait for the answer to this request."""
        try:
            return super().request_confirmation(request, timeout_s)
        finally:
            self._branches.pop(request.id, None)

    def waiting(self) -> list[tuple[str, ConfirmationRequest]]:
        """Return the requests that wait, each with its branch."""
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
