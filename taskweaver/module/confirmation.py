"""Asking a person before something runs. Where nobody answers, the answer is no.

A session has one `Confirmations`, at ``session.event_emitter.confirmations``. Whoever can ask a
person sets its `handler`; `AnsweredElsewhere` is the one for programs whose answer comes from
another thread, such as a web server's.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from time import monotonic
from typing import Protocol

from taskweaver.utils.ids import create_id


class Confirmation(Enum):
    """An answer: not now, this once, or whenever the same kinds of things are asked for."""

    no = "no"
    yes = "yes"
    always = "always"


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """What a person is asked to allow.

    Attributes:
        kinds: What it is: ``code``, ``shell`` for commands in it, ``plugin NAME``, ``tool NAME``.
        content: The whole of it.
        previous: The version of it that ran before, or was refused; empty for none.
        post_id: The post it belongs to.
        id: Its own id; an answer names it.
    """

    kinds: frozenset[str]
    content: str
    previous: str = ""
    post_id: str = ""
    id: str = field(default_factory=lambda: create_id("confirm"))

    def diff(self) -> str:
        """Return what changed since the previous version, as a unified diff; empty for none."""
        if not self.previous:
            return ""
        before, after = self.previous.splitlines(), self.content.splitlines()
        return "\n".join(difflib.unified_diff(before, after, "before", "now", lineterm="", n=2))


class ConfirmationHandler(Protocol):
    """Asks a person."""

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> Confirmation | None:
        """Return the answer, or None when none came in time. Called in the round's thread."""
        ...


class Confirmations:
    """What a person has allowed in a session.

    Attributes:
        handler: Who asks; None when nobody can, and then nothing is allowed.
    """

    def __init__(
        self,
        tell: Callable[[str, ConfirmationRequest, str], None],
        log: Callable[[str], None],
    ) -> None:
        """Allow nothing yet.

        Args:
            tell: Told ``request`` and ``response``, with the answer.
            log: Told when a handler breaks.
        """
        self.handler: ConfirmationHandler | None = None
        self._tell = tell
        self._log = log
        self._always: set[str] = set()

    def ask(self, request: ConfirmationRequest, timeout_s: float) -> bool:
        """Return whether a person allows it: by an answer now, or one given for always."""
        if request.kinds <= self._always:
            return True
        self._tell("request", request, "")
        answer = self._answer(request, timeout_s)
        if answer is Confirmation.always:
            self._always |= request.kinds
        self._tell("response", request, answer.value)
        return answer is not Confirmation.no

    def _answer(self, request: ConfirmationRequest, timeout_s: float) -> Confirmation:
        if self.handler is None:
            return Confirmation.no
        deadline = monotonic() + timeout_s
        try:
            answer = self.handler.request_confirmation(request, timeout_s)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, it is no consent
            self._log(f"nobody could be asked: {type(error).__name__}: {error}")
            return Confirmation.no
        is_late = monotonic() > deadline
        return answer if isinstance(answer, Confirmation) and not is_late else Confirmation.no


class AnsweredElsewhere:
    """A handler whose answers come from another thread, by the id of the request."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[str, Confirmation | None] = {}
        self.requests: dict[str, ConfirmationRequest] = {}

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> Confirmation | None:
        """Wait for the answer to this request."""
        with self._changed:
            self._open[request.id] = None
            self.requests[request.id] = request
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._open[request.id] is not None, timeout_s)
            del self.requests[request.id]
            return self._open.pop(request.id)

    def provide_confirmation(self, request_id: str, answer: Confirmation) -> bool:
        """Answer a request; return whether it was open. A closed one cannot be answered."""
        with self._changed:
            if request_id not in self._open:
                return False
            self._open[request_id] = answer
            self._changed.notify_all()
            return True

    def wait_for_request(self, timeout_s: float) -> ConfirmationRequest | None:
        """Return a request that is open, waiting for one; None when none comes in time."""
        with self._changed:
            self._changed.wait_for(lambda: self.requests, timeout_s)
            return next(iter(self.requests.values()), None)
