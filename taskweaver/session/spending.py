"""Spending limits of a session, which only a person extends."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from taskweaver.config.module_config import ModuleConfig
from taskweaver.llm.types import Usage
from taskweaver.session.errors import LimitReached

_GO_ON = "`/continue` allows as much again (`session.extend_limits()` in code)"


class LimitsConfig(ModuleConfig):
    """Keys under ``limits.``; 0 is no limit.

    The cost is that of a session's model calls, in the currency of the prices.
    """

    def _configure(self) -> None:
        self._set_name("limits")
        self.round_tokens = self._get_int("round_tokens")
        self.session_tokens = self._get_int("session_tokens")
        self.session_cost = self._get_float("session_cost")
        self.session_rounds = self._get_int("session_rounds")


@dataclass(slots=True)
class Spending:
    """Keeps a session within its limits. They count from when the session was opened.

    Thread-safe: branches answer side by side.
    """

    limits: LimitsConfig
    _shares: int = 1
    _rounds: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_round(self, used: Usage) -> None:
        """Count a round.

        Raises:
            LimitReached: If the session has reached its limit; nothing is counted then.
        """
        self._check_session(used)
        most = self.limits.session_rounds
        with self._lock:
            if most and self._rounds >= most * self._shares:
                had = f"This session has had {self._rounds:,} rounds (limits.session_rounds)."
                raise LimitReached(f"{had} {_GO_ON}.")
            self._rounds += 1

    def check(self, used: Usage, in_round: Usage) -> None:
        """Check, between the steps of a round.

        Args:
            used: Consumption of the session.
            in_round: Consumption of the round.

        Raises:
            LimitReached: If the round or the session has reached its limit.
        """
        tokens = in_round.total_tokens
        if self.limits.round_tokens and tokens >= self.limits.round_tokens:
            raise LimitReached(
                f"This round has used {tokens:,} tokens (limits.round_tokens is"
                f" {self.limits.round_tokens:,}). Ask again to continue from here."
            )
        self._check_session(used)

    def _check_session(self, used: Usage) -> None:
        tokens, cost = self.limits.session_tokens, self.limits.session_cost
        if tokens and used.total_tokens >= tokens * self._shares:
            raise LimitReached(
                f"This session has used {used.total_tokens:,} tokens (limits.session_tokens)."
                f" {_GO_ON}."
            )
        if cost and used.calls and used.cost is None:
            raise LimitReached(
                "limits.session_cost cannot be kept: what calls cost is unknown. Set"
                " llm.prompt_price and llm.completion_price, or remove the limit."
            )
        if cost and (used.cost or 0.0) >= cost * self._shares:
            raise LimitReached(
                f"This session has cost {used.cost:.4f} (limits.session_cost). {_GO_ON}."
            )

    def extend(self) -> None:
        """Allow a session as much again."""
        self._shares += 1
