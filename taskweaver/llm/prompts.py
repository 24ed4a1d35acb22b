"""Prompts and replies of a session: the newest in memory, and all in a file where wanted."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from taskweaver.llm.types import ChatMessage, ToolCall, Usage

PROMPTS_FILE = "prompts.jsonl"
"""Name of the file in a session's folder."""

_MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """A model call that is over.

    Attributes:
        number: Its number in the session since that was opened, from 1.
        round_id: The round it belongs to; empty before the first.
        role: The role that asked; ``summary`` for a summary in the background.
        model: Name of the model.
        messages: The prompt, as the role composed it.
        sent: Body of the last request to an endpoint; None for a model in this process.
        reply: The text that came back, as far as it came.
        finish: Why the reply ended; empty if it was not complete.
        error: Why the call failed; empty if it did not.
        usage: Tokens it consumed; None if no reply began.
        calls: The tool calls that came back.
        reasoning: Reasoning that came with the reply.
        began_at: When it began.
        duration_s: How long it took in seconds.
    """

    number: int
    round_id: str
    role: str
    model: str
    messages: Sequence[ChatMessage]
    sent: Mapping[str, Any] | None
    reply: str
    finish: str
    error: str
    usage: Usage | None
    began_at: datetime
    duration_s: float
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data: messages and reply, unchanged."""
        usage = self.usage or Usage()
        more: dict[str, Any] = {}
        if self.calls:
            more["calls"] = [call.to_dict() for call in self.calls]
        if self.reasoning:
            more["reasoning"] = self.reasoning
        return {
            "number": self.number,
            "round": self.round_id,
            "role": self.role,
            "model": self.model,
            "began_at": self.began_at.isoformat(),
            "duration_s": round(self.duration_s, 3),
            "sent": dict(self.sent or {"messages": list(self.messages)}),
            "received": self.reply,
            **more,
            "finish": self.finish,
            "error": self.error,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        }


@dataclass(slots=True)
class CallLog:
    """The model calls of a session. Thread-safe.

    Attributes:
        round_id: The newest round.
        problem: Why calls are no longer written to the file; empty while they are.
    """

    round_id: str = ""
    problem: str = ""
    _records: deque[PromptRecord] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0
    _file: Path | None = None

    def write_to(self, file: Path) -> None:
        """Append each further call to a file as a line of JSON, readable by the owner alone."""
        self._file = file

    def records(self, round_id: str | None = None) -> list[PromptRecord]:
        """Return the newest calls, at most 64, oldest first.

        Args:
            round_id: Only those of this round; None returns all.
        """
        with self._lock:
            return [item for item in self._records if round_id in {None, item.round_id}]

    def add(self, **facts: Any) -> None:
        """Keep a call.

        Args:
            **facts: Fields of `PromptRecord` but for its number.
        """
        with self._lock:
            self._count += 1
            record = PromptRecord(number=self._count, **facts)
            self._records.append(record)
            if self._file is None:
                return
            try:
                _append(self._file, record)
            except OSError as error:  # that does not end a round
                self.problem = f"{self._file} cannot be written: {error.strerror or error}"
                self._file = None


def _append(file: Path, record: PromptRecord) -> None:
    line = json.dumps(record.to_dict(), ensure_ascii=False, default=str) + "\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8", errors="replace") as out:
        out.write(line)
