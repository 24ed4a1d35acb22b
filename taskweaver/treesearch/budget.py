"""What a run may spend: nodes, time, tokens, money."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.journal import Journal
from taskweaver.treesearch.node import Node


class BudgetSpent(SearchError):
    """A run has used up what it may."""


@dataclass(slots=True)
class Budget:
    """Keeps a run within its limits; 0 is no limit. It may be asked from any thread.

    Attributes:
        steps: Most nodes, seed evaluations not counted.
        seconds: Longest time, all sittings together.
        tokens: Most tokens.
        money: Most money.
        before_s: Time of earlier sittings.
        clock: Seconds of a clock that only goes forward.
    """

    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0
    before_s: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _began: float = 0.0
    _tokens: int = 0
    _money: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, journal: Journal) -> None:
        """Start the clock, and count what was spent before."""
        self._began = self.clock()
        for node in journal.nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Count what a node consumed."""
        with self._lock:
            self._tokens += node.cost.prompt_tokens + node.cost.completion_tokens
            self._money += node.cost.money or 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds so far, all sittings together."""
        return self.before_s + (self.clock() - self._began)

    @property
    def tokens_used(self) -> int:
        """Tokens of finished nodes."""
        return self._tokens

    @property
    def money_used(self) -> float:
        """Money of finished nodes."""
        return self._money

    def why_spent(self, steps: int) -> str:
        """Return which limit is reached, or an empty text.

        Args:
            steps: Nodes so far, seed evaluations not counted.
        """
        if self.steps and steps >= self.steps:
            return f"it has had its {self.steps} nodes"
        if self.seconds and self.elapsed_s >= self.seconds:
            return f"its time of {self.seconds:g} s is over"
        if self.tokens and self._tokens >= self.tokens:
            return f"it has used {self._tokens:,} of {self.tokens:,} tokens"
        if self.money and self._money >= self.money:
            return f"it has cost {self._money:.2f} of {self.money:.2f}"
        return ""

    def check(self) -> None:
        """Check before a model call.

        Raises:
            BudgetSpent: If time, tokens or money are used up.
        """
        reason = self.why_spent(-1)
        if reason:
            raise BudgetSpent(f"The search stops: {reason}.")
