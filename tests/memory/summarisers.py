"""A small summariser and a log, for tests of summaries of old rounds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from patience import PATIENCE_S

from taskweaver.memory import CompactorConfig, ContextCompactor, Memory, Post, Round


class Notes:
    """A summariser that answers with what a function makes of the call's number.

    Attributes:
        calls: Instructions, text and alias of each call.
    """

    def __init__(self, answer: Callable[[int], str] = lambda call: f"notes {call}") -> None:
        self._answer = answer
        self.calls: list[tuple[str, str, str]] = []

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        self.calls.append((instructions, text, llm_alias))
        return self._answer(len(self.calls))

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _ in self.calls]


def failing(call: int) -> str:
    raise ConnectionError("no model")


class Log:
    """A log that is kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, msg: str, /) -> None:
        self.lines.append(msg)

    exception = warning


def settle() -> None:
    """Wait until no summary is in the making."""
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


class Chat:
    """A memory of which a role's rounds are summarised."""

    def __init__(
        self,
        model: Any = None,
        memory: Memory | None = None,
        *,
        role: str = "Planner",
        **config: Any,
    ) -> None:
        facts = {"threshold": 4, "retain_recent": 1, "token_threshold": 0, **config}
        self.memory = memory or Memory("s")
        self.model = model or Notes()
        self.log = Log()
        self.role = role
        self.compactor = ContextCompactor(
            CompactorConfig(**facts),
            self.model,
            lambda: self.memory.get_role_rounds(role),
            self.log,
            "small",
            self.memory.summaries(role),
        )
        self.memory.register_compaction_provider(role, self.compactor)
        settle()

    def begin(self, query: str, answer: str = "answer") -> Round:
        round_ = self.memory.create_round(query)
        self.memory.add_post(round_, Post.create(query, "User", self.role))
        self.memory.add_post(round_, Post.create(f"{answer} {query}", self.role, "User"))
        return round_

    def play(self, *queries: str, state: Any = "finished", answer: str = "answer") -> None:
        """Play rounds; each waits for the summary it may start."""
        for query in queries:
            self.memory.end_round(self.begin(query, answer), state)
            settle()

    def seen(self) -> tuple[list[str], str | None]:
        """Return the queries the role reads in full, and the summary it reads."""
        rounds, summary = self.memory.get_role_rounds_with_compaction(self.role)
        return [r.user_query for r in rounds], summary.summary if summary else None
