"""The form of past messages that an endpoint takes, learnt from its refusals.

Reasoning and signatures go back as they came until an endpoint refuses them. One that misses them
in replies of another model, or in examples, gets a stand-in there.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from taskweaver.llm.records import restored
from taskweaver.llm.types import ChatMessage

StandIn = Literal["reasoning", "signature"]

_NAMES: dict[StandIn, re.Pattern[str]] = {
    "reasoning": re.compile(r"reasoning_content", re.IGNORECASE),
    "signature": re.compile(r"thought[_ ]?signature", re.IGNORECASE),
}
_MISSED = re.compile(r"passed? back|missing|required|must (?:be|have|contain|include)", re.I)
_UNWANTED = re.compile(
    r"unsupported|not (?:permitted|allowed|supported)|unknown|unexpected|unrecogni[sz]ed"
    r"|extra (?:inputs?|fields?)|is included in the input",
    re.IGNORECASE,
)
_RECORD = re.compile(
    r"signature|thinking|reasoning_(?:content|details)|reasoning['\"` ]*item|extra_content"
    r"|encrypted[_ ]content|tool[_ ]?(?:call|use)[_ ]?ids?\b|call_id"
    r"|without its required (?:following|preceding) item",
    re.IGNORECASE,
)
_ROLE_ORDER = re.compile(r"role ['\"`]?user['\"`]? after role ['\"`]?tool", re.IGNORECASE)
_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_REASONING = " "  # an empty text counts as none
_BRIDGE: ChatMessage = {"role": "assistant", "content": "OK"}


@dataclass(frozen=True, slots=True)
class HistoryForm:
    """The form of past messages.

    Attributes:
        has_records: Whether replies go back as they came.
        stand_ins: Fields that replies with calls get where they lack them.
        has_bridges: Whether a word of the model stands between results and a user's message.
    """

    has_records: bool = True
    stand_ins: frozenset[StandIn] = frozenset()
    has_bridges: bool = False

    def written(self, messages: Sequence[ChatMessage], origin: str) -> list[ChatMessage]:
        """Return messages in this form.

        Args:
            messages: The chat.
            origin: Dialect, address and model that is asked.
        """
        found = restored(messages, origin if self.has_records else "")
        return [self._filled(message) for message in found] if self.stand_ins else found

    def ordered(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a request with the roles in an order that is taken.

        A dialect may have put messages after results, such as images.
        """
        if not self.has_bridges or "messages" not in body:
            return body
        return {**body, "messages": _bridged(body["messages"])}

    def _filled(self, message: ChatMessage) -> ChatMessage:
        if not message.get("tool_calls") or "record" in message:
            return message
        filled = message.copy()
        if "reasoning" in self.stand_ins:
            filled["reasoning_content"] = _REASONING
        if "signature" in self.stand_ins:
            first, *others = message["tool_calls"]
            signed: dict[str, Any] = {**first, "extra_content": _SIGNATURE}
            filled["tool_calls"] = [signed, *others]
        return filled


class HistoryMemory:
    """The form of past messages that one model takes; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = HistoryForm()

    @property
    def current(self) -> HistoryForm:
        """The form for the next request."""
        return self._current

    def learn(self, sent: HistoryForm, messages: Sequence[ChatMessage], words: str) -> bool:
        """Learn from a refusal; return whether asking again can help.

        Args:
            sent: The form of the refused request.
            messages: Its messages, as `HistoryForm.written` returned them.
            words: The endpoint's message.
        """
        wanted = _next_form(sent, messages, words)
        with self._lock:
            if self._current != sent:
                return True  # another call was faster
            self._current = wanted
        return wanted != sent


def _next_form(sent: HistoryForm, messages: Sequence[ChatMessage], words: str) -> HistoryForm:
    if _ROLE_ORDER.search(words) and not sent.has_bridges:
        return replace(sent, has_bridges=True)
    has_records = any("record" in message for message in messages)
    has_bare_calls = any(m.get("tool_calls") and "record" not in m for m in messages)
    named = frozenset(name for name, pattern in _NAMES.items() if pattern.search(words))
    is_missed = bool(_MISSED.search(words)) and not _UNWANTED.search(words)
    new = named - sent.stand_ins
    if is_missed and new and has_bare_calls:
        return replace(sent, stand_ins=sent.stand_ins | new)
    if has_records and _RECORD.search(words):
        kept = sent.stand_ins | named if is_missed else sent.stand_ins - named
        return replace(sent, has_records=False, stand_ins=kept)
    return sent


def _bridged(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return messages with a word of the model between results and a user's message."""
    found = list(messages[:1])
    for before, message in pairwise(messages):
        if before["role"] == "tool" and message["role"] == "user":
            found.append(_BRIDGE)
        found.append(message)
    return found
