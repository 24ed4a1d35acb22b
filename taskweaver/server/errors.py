"""Errors of the server, and refusals of requests."""

from __future__ import annotations

from taskweaver.errors import RemediedError


class ServerError(RemediedError):
    """The server cannot start, or an account cannot be read or changed."""


class RequestRefused(ServerError):
    """A request that is not carried out.

    Attributes:
        status: Status of the response.
        kind: Kind of the problem, a few words joined by hyphens; the same in every version.
        retry_after_s: Time in seconds after which it may succeed; 0 if repeating is no remedy.
    """

    def __init__(self, status: int, kind: str, detail: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s


def not_found(detail: str) -> RequestRefused:
    """Return the refusal of a request for a thing that is not there, or is another user's."""
    return RequestRefused(404, "not-found", detail)


def conflict(detail: str) -> RequestRefused:
    """Return the refusal of a request that does not fit the present state."""
    return RequestRefused(409, "conflict", detail)


def invalid_query(detail: str) -> RequestRefused:
    """Return the refusal of a request whose query cannot be used."""
    return RequestRefused(422, "invalid-query", detail)


def invalid_body(detail: str) -> RequestRefused:
    """Return the refusal of a request whose body cannot be used."""
    return RequestRefused(422, "invalid-body", detail)


def stopping() -> RequestRefused:
    """Return the refusal of new work while the server stops."""
    return RequestRefused(503, "stopping", "The server is stopping.", retry_after_s=5)
