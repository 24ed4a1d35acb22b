"""Errors of the library."""

from __future__ import annotations

from taskweaver.session.errors import SessionError


class RoundFailed(SessionError):
    """A question was asked and not answered; the session continues with the next one.

    The session's `answer` has the cells, figures and costs of the round all the same.
    """
