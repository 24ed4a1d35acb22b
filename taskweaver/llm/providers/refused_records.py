"""Chats whose records a model refused: they go on in neutral form."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence

from taskweaver.llm.types import ChatMessage

_MOST_CHATS = 256
_REFUSED = re.compile(
    r"signature|thinking|reasoning_content|encrypted_content|\btool_(?:use|call)|call_id",
    re.IGNORECASE,
)


class RefusedRecords:
    """Memory of the chats whose records were refused; thread-safe, bounded.

    A chat is known by its first record.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: dict[str, None] = {}

    def origin_for(self, messages: Sequence[ChatMessage], origin: str) -> str:
        """Return the origin whose records go back in a chat; empty for none."""
        chat = _chat(messages, origin)
        with self._lock:
            return "" if chat in self._chats else origin

    def learn(self, messages: Sequence[ChatMessage], origin: str, words: str) -> bool:
        """Note that a chat was refused; return whether it can go on without records.

        Args:
            messages: The chat, with its records.
            origin: The origin whose records were sent.
            words: The endpoint's explanation.
        """
        chat = _chat(messages, origin)
        with self._lock:
            if not chat or chat in self._chats or not _REFUSED.search(words):
                return False
            self._chats[chat] = None
            while len(self._chats) > _MOST_CHATS:
                del self._chats[next(iter(self._chats))]
            return True


def _chat(messages: Sequence[ChatMessage], origin: str) -> str:
    """Return the name of a chat; empty if it has no record of the origin."""
    records = (message.get("record") or {} for message in messages)
    first = next((record for record in records if record.get("origin") == origin), None)
    if first is None:
        return ""
    return hashlib.sha256(json.dumps(first, sort_keys=True, default=str).encode()).hexdigest()
