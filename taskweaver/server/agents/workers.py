"""Means by which the messages of all users are answered, and the spent quotas."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from taskweaver.llm.types import Usage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.accounts import Accounts
from taskweaver.server.admission import Admission, User, used_up
from taskweaver.server.databases.statements import retry_while_lost
from taskweaver.server.errors import ServerError

_PAID = "An admin may raise it."


def check_spending(accounts: Accounts, user: User, more: Usage | None = None) -> None:
    """Check the money and the tokens of a user, with those of an open round.

    Raises:
        RequestRefused: If a quota is used up, or what calls cost is unknown.
    """
    quota, more = user.quota, more or Usage()
    if quota.cost is None and quota.tokens is None:
        return
    spent = accounts.spent(user.name)
    tokens, cost = spent.tokens + more.total_tokens, spent.cost + (more.cost or 0.0)
    if quota.tokens is not None and tokens >= quota.tokens:
        raise used_up(user, "tokens", f"{tokens:,}", f"{quota.tokens:,}", _PAID)
    if quota.cost is None:
        return
    if more.calls and more.cost is None:
        remedy = "Set llm.prompt_price and llm.completion_price."
        raise used_up(user, "cost", "an unknown part", f"{quota.cost:.4f}", remedy)
    if cost >= quota.cost:
        raise used_up(user, "cost", f"{cost:.4f}", f"{quota.cost:.4f}", _PAID)


@dataclass(frozen=True, slots=True)
class RoundWorkers:
    """Means by which messages are answered.

    Attributes:
        accounts: Accounts whose shares are spent.
        log: The log of failures.
    """

    accounts: Accounts
    log: TelemetryLogger

    @property
    def admission(self) -> Admission:
        """The shares of the users, and places for their work."""
        return self.accounts.admission

    def log_failures(self, what: str, outcomes: Iterable[object]) -> None:
        """Log the errors among the outcomes of several steps that each had to be taken."""
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                self.log.error(f"{what}: {outcome!r}")

    def spend(self, user: User, usage: Usage, end: threading.Event) -> None:
        """Add to the spending of a user. Wait for a database that is away, until an event."""
        add = partial(self.accounts.spend, user.name, usage.cost or 0.0, usage.total_tokens)
        try:
            retry_while_lost(add, end, is_repeatable=False)
        except ServerError:  # the answer that was paid for is not lost
            self.log.exception(f"the spending of {user.name} may lack {usage.total_tokens} tokens")
