"""Recorded replies as a model: found by the turn of a case and their order in it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.evaluation.case import RecordedReply
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ChatMessage, ModelRequest

_HINT = "A recording fits one way of working: see 'Evaluation' in the documentation."
_OPERATIONS = {"remember": "text", "forget": "text", "recall": "query"}


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
        """Return the next reply, its fields as calls of the tools that are offered.

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
        if reply.response is not None:
            return _as_calls(reply.response, [tool.name for tool in request.tools])
        if not reply.calls:
            return reply.text
        if not request.tools:
            detail = f"reply {self._taken} of {place} calls tools, which are not offered."
            raise ModelError("configuration", detail, hint=_HINT)
        return _message(reply.text, [(call.name, call.arguments) for call in reply.calls])


def _as_calls(fields: Mapping[str, Any], offered: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a reply as a message with calls of tools."""
    kind = fields.get("reply_type")
    text = str(fields.get("reply_content" if kind == "text" else "message", ""))
    content = fields.get("reply_content", "") if kind in ("python", "bash") else ""
    code = str(fields.get("code") or content)
    is_order = not code and fields.get("send_to", "User") != "User"
    calls = [
        (name, {argument: fields[name]})
        for name, argument in _OPERATIONS.items()
        if fields.get(name)
    ]
    if fields.get("plan"):
        calls.append(("set_plan", {"steps": str(fields["plan"]).splitlines()}))
    if code:
        run = next((name for name in offered if name.startswith("run_")), "run_python")
        calls.append((run, {"intent": text, "code": code}))
    if is_order:
        calls.append(("ask", {"role": fields["send_to"], "order": text}))
    shown = str(fields.get("thought", "")) if code or is_order else text
    return _message(shown, [(name, json.dumps(given)) for name, given in calls])


def _message(text: str, calls: Sequence[tuple[str, str]]) -> dict[str, Any]:
    functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"content": text, "tool_calls": [{"function": function} for function in functions]}
