"""Small helpers of the conversation model: who takes part, and text that a file can hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskweaver.memory.round import Round
from taskweaver.memory.type_vars import RoleName


def roles_of(rounds: Iterable[Round]) -> list[RoleName]:
    """Return all senders and receivers, in order of first appearance."""
    posts = [post for round_ in rounds for post in round_.post_list]
    return list(dict.fromkeys(role for post in posts for role in (post.send_from, post.send_to)))


def encodable(data: Any) -> Any:
    """Return plain data with text that UTF-8 can hold. Shared parts stay shared.

    Surrogate pairs are joined, halves alone become the replacement sign.
    """
    return _encodable(data, {})


def _encodable(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, str):
        if not value.isascii():
            value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, dict):
        # Remembered before it is filled, so that data which holds itself ends.
        new_map = done[id(value)] = {}
        new_map.update((_encodable(k, done), _encodable(v, done)) for k, v in value.items())
        return new_map
    if isinstance(value, list | tuple):
        new_list = done[id(value)] = []
        new_list.extend(_encodable(item, done) for item in value)
        return new_list
    return value
