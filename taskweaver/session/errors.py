"""Errors of a session."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class SessionError(TaskWeaverError):
    """A request to a session that cannot be fulfilled.

    Attributes:
        detail: The problem and its remedy.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class SessionBusy(SessionError):
    """A message was sent while another is being answered."""


class SessionClosed(SessionError):
    """The session was stopped."""


class UnknownSessionBranch(SessionError):
    """A branch that does not exist."""


class UnknownRound(SessionError):
    """A round that a branch does not see."""


class StateNotKept(SessionError):
    """The variables of a past moment are no longer kept."""


class SessionInUse(SessionError):
    """Another process has the session open."""


class FileNotAdded(SessionError):
    """A file cannot be brought into the working directory."""


class RoundLimit(SessionError):
    """The roles sent more messages in one round than is allowed."""


class RoundInterrupted(SessionError):
    """The round was given up between two of its steps."""


class LimitReached(SessionError):
    """A round or a session has reached its limit."""


class EventsGone(SessionError):
    """Events that a reader asks for are no longer kept.

    Attributes:
        first: Number of the oldest event that is kept.
    """

    def __init__(self, after: int, first: int) -> None:
        super().__init__(
            f"The events after {after} are no longer kept; the oldest is {first}. Read the"
            " conversation, and go on with the newest event."
        )
        self.first = first


class EventsToCome(SessionError):
    """A reader asks for events after one that is yet to come."""


def check_events(after: int, first: int, last: int) -> None:
    """Check that the events after a number are kept, given the oldest and the newest number.

    Raises:
        EventsGone: If some are no longer kept.
        EventsToCome: If there is no event of that number yet.
    """
    if after > last:
        raise EventsToCome(f"There is no event {after} yet: the newest is {last}.")
    if after < first - 1:
        raise EventsGone(after, first)
