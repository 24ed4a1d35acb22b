"""Events of a session, and the one emitter, which roles write to and listeners hear.

Events are handled in order, in the thread of the round; see `lanes` for work side by side. A
listener that raises is logged and heard of again with the next event: listening never steers the
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Protocol, runtime_checkable

from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.confirmation import (
    AnyConfirmationHandler,
    Confirmation,
    ConfirmationReply,
    ConfirmationRequest,
    Confirmations,
    EditedContent,
)
from taskweaver.module.confirmation import ConfirmationHandler as ConfirmationHandler
from taskweaver.module.lanes import in_turn

_branch: ContextVar[str] = ContextVar("branch", default="")
_listening: ContextVar[tuple[_BlockListener, ...]] = ContextVar("listening", default=())
_round: ContextVar[str] = ContextVar("round", default="")


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
    """Events of a post, with the `extra` noted here.

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


def current_branch() -> str:
    """Return the branch on which this context works, or an empty text outside of a round."""
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
    """A handler that dispatches events by scope. Override the methods of interest."""

    def handle(self, event: TaskWeaverEvent) -> None:
        """Pass an event to the method of the event's scope."""
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


@dataclass(slots=True)
class PostEventProxy:
    """A post being written: every change is made on the post and emitted as an event."""

    post: Post
    _tell: Callable[[PostEventType, str, dict[str, Any]], None]

    def update_send_to(self, send_to: str) -> None:
        """Set the receiver."""
        self.post.send_to = send_to
        self._tell(PostEventType.post_send_to_update, "", {"role": send_to})

    def update_status(self, status: str) -> None:
        """Emit the status, which is not part of the post."""
        self._tell(PostEventType.post_status_update, status, {})

    def update_message(self, message: str, is_end: bool = True) -> None:  # noqa: FBT001, FBT002 - kept
        """Append text to the message."""
        self.post.message += message
        self._tell(PostEventType.post_message_update, message, {"is_end": is_end})

    def restart_message(self) -> None:
        """Empty the message, if there is one: the text so far was a draft."""
        if self.post.message:
            self.post.message = ""
            self._tell(PostEventType.post_message_restart, "", {})

    def update_attachment(
        self,
        message: Any,
        type: AttachmentType | None = None,
        extra: Any = None,
        id: str | None = None,
        is_end: bool = True,  # noqa: FBT001, FBT002 - kept signature
    ) -> Attachment:
        """Add an attachment, or with `id` append text to the last one.

        Args:
            message: Content, or the text to append.
            type: Type of a new attachment.
            extra: Plain data to keep with it.
            id: Id of the attachment that grows; it must be the post's last.
            is_end: Whether the attachment is complete.

        Raises:
            ValueError: If neither `type` is given nor `id` is the last attachment's.
        """
        attachment = self._grow(id, message) if id is not None else self._add(type, message, extra)
        text = message if isinstance(message, str) else "\n".join(map(str, message))
        self._tell_attachment(attachment, text, is_end=is_end)
        return attachment

    def replace_attachment(self, attachment: Attachment, content: str) -> None:
        """Give an attachment of the post, which is complete, another text."""
        attachment.content = content
        self._tell_attachment(attachment, content, is_end=True, replaces=True)

    def _tell_attachment(self, attachment: Attachment, text: str, **facts: bool) -> None:
        facts_of = {"type": attachment.type, "extra": attachment.extra, "id": attachment.id}
        self._tell(PostEventType.post_attachment_update, text, facts_of | facts)

    def _add(self, type: AttachmentType | None, content: Any, extra: Any) -> Attachment:
        if type is None:
            raise ValueError("a new attachment needs a type")
        attachment = Attachment.create(type, content, extra=extra)
        self.post.add_attachment(attachment)
        return attachment

    def _grow(self, id: str, text: str) -> Attachment:
        last = self.post.attachment_list[-1] if self.post.attachment_list else None
        if last is None or last.id != id:
            raise ValueError(f"only the last attachment can grow, and {id!r} is not the last")
        last.content += text
        return last

    def emit_execution_output(self, stream: str, text: str) -> None:
        """Emit output of running code, which is not part of the post."""
        self._tell(PostEventType.post_execution_output, text, {"stream": stream, "text": text})

    def error(self, msg: str) -> None:
        """Replace the post's message by an error message."""
        self.post.attachment_list = []
        self.post.message = msg
        self._tell(PostEventType.post_error, msg, {})

    def end(self, msg: str = "") -> Post:
        """Finish the post and return the post."""
        self._tell(PostEventType.post_end, msg, {})
        return self.post


class _BlockListener:
    """Listener of a block: it hears of the rounds that begin in the block, and of the session."""

    def __init__(self, handler: SessionEventHandler) -> None:
        self._handler = handler
        self.rounds: set[str] = set()

    def handle(self, event: TaskWeaverEvent) -> None:
        """Pass an event on, unless the event is of another round."""
        if event.round_id is None or event.round_id in self.rounds:
            self._handler.handle(event)


class SessionEventEmitter:
    """Emitter of one session. Rounds that are open at once are told apart by their contexts."""

    def __init__(self, logger: TelemetryLogger | None = None) -> None:
        self._handlers: list[SessionEventHandler] = []
        self._logger = logger
        self._open: list[str] = []
        self.confirmations = Confirmations(
            self._tell_confirmation, self._log_warning, lambda: self._round_id or ""
        )

    @property
    def _round_id(self) -> str | None:
        """The open round of this context, or the only open round for a thread without a round."""
        own = _round.get()
        if own in self._open:
            return own
        return self._open[0] if len(self._open) == 1 else None

    @property
    def confirmation_handler(self) -> AnyConfirmationHandler | None:
        """The handler that asks a person before something runs, or None."""
        return self.confirmations.handler

    @confirmation_handler.setter
    def confirmation_handler(self, handler: AnyConfirmationHandler | None) -> None:
        self.confirmations.handler = handler

    def _tell_confirmation(
        self, request: ConfirmationRequest, answer: ConfirmationReply | None
    ) -> None:
        is_request = answer is None
        kind = (
            PostEventType.post_confirmation_request
            if is_request
            else PostEventType.post_confirmation_response
        )
        edited = answer if isinstance(answer, EditedContent) else None
        word = answer if isinstance(answer, Confirmation) else Confirmation.yes
        text = request.content if is_request else word.value
        extra: dict[str, Any] = {"id": request.id, "kinds": sorted(request.kinds)}
        if not is_request:
            extra["approved"] = answer is not Confirmation.no
        if is_request or edited is not None:
            extra["code"] = request.content if edited is None else edited.content
        scope, post_id = EventScope.post, request.post_id
        self.emit(TaskWeaverEvent(scope, kind, self._round_id, post_id, text, extra))

    def _log_warning(self, text: str) -> None:
        if self._logger is not None:
            self._logger.warning(text)

    def register(self, handler: SessionEventHandler, *, is_first: bool = False) -> None:
        """Send `handler` every event from now on, last or, with `is_first`, first."""
        self._handlers.insert(0 if is_first else len(self._handlers), handler)

    def unregister(self, handler: SessionEventHandler) -> None:
        """Send `handler` no more events."""
        self._handlers.remove(handler)

    @contextmanager
    def handle_events_ctx(self, handler: SessionEventHandler | None = None) -> Iterator[None]:
        """Send `handler` the events of the session and of the rounds that begin in the block."""
        if handler is None:
            yield
            return
        listener = _BlockListener(handler)
        token = _listening.set((*_listening.get(), listener))
        self.register(listener)
        try:
            yield
        finally:
            self.unregister(listener)
            _listening.reset(token)

    def emit(self, event: TaskWeaverEvent) -> None:
        """Send an event to every listener, in turn."""
        in_turn(partial(self._send, event), waits=False)

    def _send(self, event: TaskWeaverEvent) -> None:
        for handler in tuple(self._handlers):
            try:
                handler.handle(event)
            except Exception:
                if self._logger is None:
                    raise
                self._logger.exception(f"a listener failed on {event.t.value}")

    def emit_session(self, type: SessionEventType, msg: str = "") -> None:
        """Emit an event of the session."""
        self.emit(TaskWeaverEvent(EventScope.session, type, None, None, msg))

    def start_round(self, round_id: str, query: str = "") -> None:
        """Open a round, to which posts of this context belong from now on."""
        self._open.append(round_id)
        _round.set(round_id)
        for listener in _listening.get():
            listener.rounds.add(round_id)
        self._emit_round(RoundEventType.round_start, query)

    def end_round(self, round_id: str) -> None:
        """Close a round.

        Raises:
            ValueError: If it is not open.
        """
        if round_id not in self._open:
            raise ValueError(f"round {round_id!r} is not open ({', '.join(self._open) or 'none'})")
        self._emit_round(RoundEventType.round_end)
        self._open.remove(round_id)
        _round.set("")

    def emit_error(self, msg: str) -> None:
        """Emit the reason the open round failed."""
        self._emit_round(RoundEventType.round_error, msg)

    def warn(self, msg: str) -> None:
        """Emit a warning: a part of the open round failed, and the round continues."""
        self._emit_round(RoundEventType.round_warning, msg)

    def create_post_proxy(self, send_from: str) -> PostEventProxy:
        """Begin a post in the open round.

        Raises:
            ValueError: If no round is open.
        """
        if self._round_id is None:
            raise ValueError("a post belongs to a round, and none is open")
        round_id = self._round_id
        post = Post.create("", send_from)

        def tell(kind: PostEventType, msg: str, extra: dict[str, Any]) -> None:
            self.emit(TaskWeaverEvent(EventScope.post, kind, round_id, post.id, msg, extra))

        tell(PostEventType.post_start, "", {"role": send_from})
        return PostEventProxy(post, tell)

    @contextmanager
    def post(self, send_from: str) -> Iterator[PostEventProxy]:
        """Write a post inside the block. An exception becomes the post's error."""
        proxy = self.create_post_proxy(send_from)
        try:
            yield proxy
        except BaseException as error:
            proxy.error(str(error) or type(error).__name__)
            raise

    def _emit_round(self, kind: EventType, msg: str = "") -> None:
        self.emit(TaskWeaverEvent(EventScope.round, kind, self._round_id, None, msg))
