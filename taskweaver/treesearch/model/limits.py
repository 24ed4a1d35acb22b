"""Limits of a run: its budget, its phases, its questions to models."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from taskweaver.ces.command_process import CommandLimits
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import Cost
from taskweaver.utils.text import counted


class BudgetSpent(SearchError):
    """A run has used its budget up."""


@dataclass(slots=True)
class Budget:
    """Keeps a run within its limits. 0 is no limit. It may be asked from any thread.

    Attributes:
        steps: Most nodes, seed evaluations not counted.
        seconds: Longest time, all sittings together.
        tokens: Most tokens.
        money: Most money.
        before_s: Time of earlier sittings.
        spent: Consumption of all model calls so far, all sittings together.
        clock: Seconds of a clock that only goes forward.
    """

    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0
    before_s: float = 0.0
    spent: Cost = field(default_factory=Cost)
    clock: Callable[[], float] = time.monotonic
    _began: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Start the clock."""
        self._began = self.clock()

    def add(self, cost: Cost) -> None:
        """Count the consumption of a call."""
        with self._lock:
            self.spent += cost

    @property
    def elapsed_s(self) -> float:
        """Seconds so far, all sittings together."""
        return self.before_s + (0.0 if self._began is None else self.clock() - self._began)

    @property
    def left_s(self) -> float:
        """Seconds that are left, 0 when its time is over, endless without a limit."""
        return max(0.0, self.seconds - self.elapsed_s) if self.seconds else float("inf")

    @property
    def is_late(self) -> bool:
        """Whether its time is over."""
        return not self.left_s

    @property
    def tokens_used(self) -> int:
        """Tokens so far."""
        return self.spent.prompt_tokens + self.spent.completion_tokens

    @property
    def money_used(self) -> float:
        """Money so far."""
        return self.spent.money or 0.0

    def why_spent(self, steps: int | None) -> str:
        """Return which limit is reached, or an empty text.

        `steps` is the number of nodes but seed evaluations; None leaves their limit out.
        """
        if self.steps and steps is not None and steps >= self.steps:
            return f"limit of the run reached: {counted(self.steps, 'node')}"
        if self.is_late:
            return f"its time of {self.seconds:g} s is over"
        if self.tokens and self.tokens_used >= self.tokens:
            return f"it has used {self.tokens_used:,} of {self.tokens:,} tokens"
        if self.money and self.money_used >= self.money:
            return f"it has cost {self.money_used:.4g} of {self.money:.4g}"
        return ""

    def check(self) -> None:
        """Check before a model call.

        Raises:
            BudgetSpent: If time, tokens or money are used up.
        """
        reason = self.why_spent(None)
        if reason:
            raise BudgetSpent(f"The search stops: {reason}.")


@dataclass(frozen=True, slots=True)
class PhaseLimits:
    """Limits of the phases of a node. 0 sets no limit.

    Attributes:
        download_s: Longest time of a download command.
        compile_s: Longest time of a compile command.
        run_s: Longest time of a run command.
        command: Limits of each command beside its time.
    """

    download_s: float
    compile_s: float
    run_s: float
    command: CommandLimits


@dataclass(frozen=True, slots=True)
class RoleModels:
    """Models of a search by their work, as aliases of ``ext_llms``, empty for the main model.

    Attributes:
        code: Plans, attempts, commands and programs that draw plots.
        feedback: Judgements of attempts that ran.
        vlm: Descriptions of plots; empty where none are wanted.
        summary: Lessons of attempts and stages, and the choice of the best.
    """

    code: str
    feedback: str
    vlm: str
    summary: str


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Limits of a question to a model.

    Attributes:
        attempts: Replies that may be unusable.
        read_rounds: Replies that may only ask for something of the memory.
    """

    attempts: int
    read_rounds: int
