"""Events of a session, for its listeners."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable


class EventScope(Enum):
    """Subject of an event: session, round or post."""

    session = "session"
    round = "round"
    post = "post"


class SessionEventType(Enum):
    """Events of a session."""

    session_start = "session_start"
    session_end = "session_end"
    session_new_round = "session_new_round"


class RoundEventType(Enum):
    """Events of a round.

    `msg` of ``round_start`` is the query, of ``round_error`` the reason, of ``round_warning`` the
    failure despite which the round continues.
    """

    round_start = "round_start"
    round_end = "round_end"
    round_error = "round_error"
    round_warning = "round_warning"
    round_new_post = "round_new_post"


class PostEventType(Enum):
    """Events of a post; `extra` as noted.

    ``post_start`` and ``post_send_to_update``: ``{"role"}``. ``post_message_update``: `msg` is
    new text, ``{"is_end"}``; ``post_message_restart``: the text so far was a draft and the message
    begins again. ``post_attachment_update``: `msg` is new text,
    ``{"type", "extra", "id", "is_end"}``, with ``replaces`` where it takes the place of the text so
    far. ``post_execution_output``: ``{"stream", "text"}``.
    ``post_status_update`` and ``post_error``: `msg`. ``post_confirmation_request``: `msg` is the
    code or call to allow, ``{"id", "kinds", "code"}``; ``post_confirmation_response``: `msg` is the
    answer, ``{"id", "kinds", "approved"}``, with ``code`` where a person changed it.
    """

    post_start = "post_start"
    post_end = "post_end"
    post_error = "post_error"
    post_status_update = "post_status_update"
    post_send_to_update = "post_send_to_update"
    post_message_update = "post_message_update"
    post_message_restart = "post_message_restart"
    post_attachment_update = "post_attachment_update"
    post_execution_output = "post_execution_output"
    post_confirmation_request = "post_confirmation_request"
    post_confirmation_response = "post_confirmation_response"


EventType = SessionEventType | RoundEventType | PostEventType


_branch: ContextVar[str] = ContextVar("branch", default="")


def current_branch() -> str:
    """Return the branch on which this context works; empty outside of a round."""
    return _branch.get()


@dataclass(frozen=True, slots=True)
class TaskWeaverEvent:
    """An event of a session.

    `round_id` is None for a session event, `post_id` for session and round events; for `msg` and
    `extra` see the event types. `branch` is the branch of the session on which it happened; empty
    outside of a round.
    """

    scope: EventScope
    t: EventType
    round_id: str | None
    post_id: str | None
    msg: str
    extra: dict[str, Any] = field(default_factory=dict)
    branch: str = field(default_factory=_branch.get)


@contextmanager
def on_branch(name: str) -> Iterator[None]:
    """Have the events of this context happen on a branch."""
    token = _branch.set(name)
    try:
        yield
    finally:
        _branch.reset(token)


@runtime_checkable
class SessionEventHandler(Protocol):
    """Whoever listens. Called in the thread where the event happens, in order."""

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""


class SessionEventHandlerBase:
    """A handler that dispatches events by scope; override the methods of interest."""

    def handle(self, event: TaskWeaverEvent) -> None:
        """Pass an event to the method of its scope."""
        if isinstance(event.t, SessionEventType):
            self.handle_session(event.t, event.msg, event.extra)
        elif isinstance(event.t, RoundEventType):
            self.handle_round(event.t, event.msg, event.extra, event.round_id or "")
        else:
            self.handle_post(
                event.t, event.msg, event.extra, event.post_id or "", event.round_id or ""
            )

    def handle_session(self, type: SessionEventType, msg: str, extra: Any, **kwargs: Any) -> None:
        """Handle a session event."""

    def handle_round(
        self,
        type: RoundEventType,
        msg: str,
        extra: Any,
        round_id: str,
        **kwargs: Any,
    ) -> None:
        """Handle a round event."""

    def handle_post(
        self,
        type: PostEventType,
        msg: str,
        extra: Any,
        post_id: str,
        round_id: str,
        **kwargs: Any,
    ) -> None:
        """Handle a post event."""
