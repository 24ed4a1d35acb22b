"""Small helpers of the conversation model: who takes part, and text that a file can hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskweaver.memory.round import Round
from taskweaver.memory.type_vars import RoleName
from taskweaver.utils.redact import mapped
from taskweaver.utils.surrogates import repair


def roles_of(rounds: Iterable[Round]) -> list[RoleName]:
    """Return all senders and receivers, in order of first appearance."""
    posts = [post for round_ in rounds for post in round_.post_list]
    return list(dict.fromkeys(role for post in posts for role in (post.send_from, post.send_to)))


def encodable(data: Any) -> Any:
    """Return plain data with text that UTF-8 can hold. Shared parts stay shared.

    Surrogate pairs are joined, halves alone become the replacement sign.
    """
    return mapped(data, repair)
