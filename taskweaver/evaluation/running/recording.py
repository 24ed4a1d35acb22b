"""Recorded replies as a model: found by the turn of a case and their order in it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from taskweaver.evaluation.cases.case import RecordedReply
from taskweaver.evaluation.running.in_form import in_form
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ChatMessage, ModelRequest

_HINT = "A recording fits one way of working: see 'Evaluation' in the documentation."


class Recording:
    """The recorded replies of a case; called as the model of an application.

    A reply is found by its place, not by the prompt: a recording outlives changes of prompts, and
    shows nothing about them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._turn = 0
        self._replies: Sequence[RecordedReply] = ()
        self._taken = 0

    def begin_turn(self, replies: Sequence[RecordedReply]) -> None:
        """Go on to the replies of the next question."""
        with self._lock:
            self._turn += 1
            self._replies, self._taken = replies, 0

    @property
    def left_over(self) -> int:
        """Number of replies of this turn that were not asked for."""
        with self._lock:
            return len(self._replies) - self._taken

    def __call__(
        self, _messages: Sequence[ChatMessage], request: ModelRequest
    ) -> str | dict[str, Any]:
        """Return the next reply, in the form that the request asks for.

        Raises:
            ModelError: Of kind ``recording_miss``, if there is none; of kind ``configuration``,
                if it calls tools and none are offered.
        """
        with self._lock:
            place = f"{self._name}, turn {self._turn}"
            if self._taken >= len(self._replies):
                detail = f"the recording of {place} has {len(self._replies)} replies, and one more"
                raise ModelError("recording_miss", f"{detail} was asked for.", hint=_HINT)
            reply = self._replies[self._taken]
            self._taken += 1
        if reply.calls and not request.tools:
            detail = f"reply {self._taken} of {place} calls tools, which are not offered."
            raise ModelError("configuration", detail, hint=_HINT)
        return in_form(reply, request)
