"""Confirmation by a person before something runs. Without an answer, nothing runs.

A session has one `Confirmations`, at ``session.event_emitter.confirmations``. A program that can
ask a person sets its `handler`; `AnsweredElsewhere` is the handler for programs whose answer
comes from another thread, for example a web server's.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from taskweaver.errors import TaskWeaverError
from taskweaver.module.lanes import in_turn
from taskweaver.utils.ids import create_id
from taskweaver.utils.parsing import signature_of


class Confirmation(Enum):
    """An answer: not now, this once, or whenever the same kinds of things are asked for."""

    no = "no"
    yes = "yes"
    always = "always"


@dataclass(frozen=True, slots=True)
class EditedContent:
    """An answer that allows this content in place of the requested content, this once."""

    content: str


ConfirmationReply = Confirmation | EditedContent
"""What a person answers."""


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """Request to a person to allow something.

    Attributes:
        kinds: Its kinds: ``code``, ``shell`` for commands in it, ``plugin NAME``, ``tool NAME``.
        content: The whole of it.
        previous: The version of it that ran before, or was refused; empty for none.
        post_id: The post it belongs to.
        id: Its own id; an answer names it.
        is_editable: Whether a person may answer with another content; see `EditedContent`.
    """

    kinds: frozenset[str]
    content: str
    previous: str = ""
    post_id: str = ""
    id: str = field(default_factory=lambda: create_id("confirm"))
    is_editable: bool = False

    def diff(self) -> str:
        """Return the changes since the previous version, as a unified diff, or an empty text."""
        if not self.previous:
            return ""
        before, after = self.previous.splitlines(), self.content.splitlines()
        return "\n".join(difflib.unified_diff(before, after, "before", "now", lineterm="", n=2))


class NotConfirmed(TaskWeaverError):
    """No person answered, which is not the same as a person's no."""


class ConfirmationHandlerFailed(NotConfirmed):
    """A confirmation handler raised, or returned no answer, so no person was asked."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        """Name the exception that the handler raised."""
        shown = f"{type(self.error).__name__}: {self.error}"
        return f"the program's confirmation handler failed, so no person was asked ({shown})."


@runtime_checkable
class ConfirmationHandler(Protocol):
    """Asks a person."""

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> ConfirmationReply | None:
        """Return the answer, or None without an answer in time. Called in the round's thread."""


class OriginalConfirmationHandler(Protocol):
    """Asks a person, in the form that handlers for the original TaskWeaver have."""

    def request_confirmation(self, code: str, round_id: str, post_id: str | None) -> bool:
        """Return whether the code may run. Called in the round's thread."""


AnyConfirmationHandler = ConfirmationHandler | OriginalConfirmationHandler


_AS_CONFIRMATION = {True: Confirmation.yes, False: Confirmation.no}


class Confirmations:
    """Permissions a person has given in a session.

    Attributes:
        handler: Asks the person; None allows nothing.
    """

    def __init__(
        self,
        tell: Callable[[ConfirmationRequest, ConfirmationReply | None], None],
        log: Callable[[str], None],
        round_id: Callable[[], str],
    ) -> None:
        """Allow nothing yet.

        `tell` receives a request, first without an answer and then with the answer; `round_id`
        returns the id of the open round, for handlers of the original's form.
        """
        self.handler: AnyConfirmationHandler | None = None
        self._tell = tell
        self._log = log
        self._round_id = round_id
        self._always: set[str] = set()

    def ask(self, request: ConfirmationRequest, timeout_s: float) -> bool:
        """Return whether a person allows it: by an answer now, or one given for always.

        Raises:
            NotConfirmed: If there is no handler, it fails, or no answer comes in time.
        """
        return self.allowed_content(request, timeout_s) is not None

    def allowed_content(self, request: ConfirmationRequest, timeout_s: float) -> str | None:
        """Return the content that a person allows, None for a no. Raises as `ask`.

        It is that of the request, unless that is editable and the person changed it.
        """
        found: str | None = in_turn(lambda: self._ask(request, timeout_s))
        return found

    def _ask(self, request: ConfirmationRequest, timeout_s: float) -> str | None:
        if request.kinds <= self._always:
            return request.content
        expect = getattr(self.handler, "expect", None)
        if expect is not None:  # its answer may come as soon as listeners hear of the request
            expect(request)
        self._tell(request, None)
        answer: ConfirmationReply = Confirmation.no
        try:
            answer = self._answer(request, timeout_s)
        except NotConfirmed:
            raise
        except Exception as error:
            failed = ConfirmationHandlerFailed(error)
            self._log(str(failed))
            raise failed from error
        finally:
            self._tell(request, answer)
        if isinstance(answer, EditedContent):
            return answer.content
        if answer is Confirmation.always:
            self._always |= request.kinds
        return None if answer is Confirmation.no else request.content

    def forget(self, kinds: AbstractSet[str]) -> None:
        """Ask again for kinds of things that were allowed for always."""
        self._always -= kinds

    def _answer(self, request: ConfirmationRequest, timeout_s: float) -> ConfirmationReply:
        if self.handler is None:
            raise NotConfirmed(
                "the program has no confirmation handler, so no person was asked. Ask in a"
                " terminal, or set confirmation_handler of the session's event_emitter."
            )
        deadline = monotonic() + timeout_s
        handle: Callable[..., Any] = self.handler.request_confirmation
        if _is_original(handle):
            allowed = handle(request.content, self._round_id(), request.post_id)
            answer: Any = _AS_CONFIRMATION[allowed] if isinstance(allowed, bool) else allowed
        else:
            answer = handle(request, timeout_s)
        if answer is None or monotonic() > deadline:
            raise NotConfirmed("no person answered.")
        if isinstance(answer, EditedContent) and request.is_editable:
            return answer
        if not isinstance(answer, Confirmation):
            raise TypeError(f"{answer!r} is not a Confirmation")
        return answer


def _is_original(handle: Callable[..., Any]) -> bool:
    """Return whether a handler's method takes code, round and post, as the original's does."""
    parameters = signature_of(handle).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) == 3 and all(p.kind is not p.VAR_POSITIONAL for p in parameters)


class AnsweredElsewhere:
    """A handler whose answers come from another thread, by the id of the request."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[str, ConfirmationReply | None] = {}
        self.requests: dict[str, ConfirmationRequest] = {}

    def expect(self, request: ConfirmationRequest) -> None:
        """Take an answer to a request from now on."""
        with self._changed:
            if request.id not in self._open:
                self._open[request.id] = None
                self.requests[request.id] = request
                self._changed.notify_all()

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> ConfirmationReply | None:
        """Wait for the answer to this request."""
        self.expect(request)
        with self._changed:
            self._changed.wait_for(lambda: self._open[request.id] is not None, timeout_s)
            del self.requests[request.id]
            return self._open.pop(request.id)

    def provide_confirmation(self, request_id: str, answer: ConfirmationReply) -> bool:
        """Answer a request, and return whether the request was open.

        Closed requests take no answer.

        Raises:
            ValueError: If the answer has another content, and the request is not editable.
        """
        with self._changed:
            if request_id not in self._open or self._open[request_id] is not None:
                return False
            is_edited = isinstance(answer, EditedContent)
            if is_edited and not self.requests[request_id].is_editable:
                raise ValueError("Only code is edited; this is answered by yes, no or always.")
            self._open[request_id] = answer
            self._changed.notify_all()
            return True
