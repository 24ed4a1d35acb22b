"""Quotas of users: money and tokens that their messages spend."""

from __future__ import annotations

from taskweaver.llm.types import Usage
from taskweaver.server.accounts import Accounts, User
from taskweaver.server.errors import RequestRefused, quota_used_up


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
        raise quota_used_up(f"{user.name} has used {tokens:,} of {quota.tokens:,} tokens.")
    if quota.cost is None:
        return
    if more.calls and more.cost is None:
        detail = "What calls cost is unknown: set llm.prompt_price and llm.completion_price."
        raise RequestRefused(403, "quota", f"The quota of money cannot be kept. {detail}")
    if cost >= quota.cost:
        raise quota_used_up(f"{user.name} has spent {cost:.4f} of {quota.cost:.4f}.")
