"""Alternatives: orders that are carried out side by side, each on a branch of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.role.forms.actions import Alternatives, BranchOrder
from taskweaver.utils.parsing import json_value

ALTERNATIVES = "alternatives"
"""Name of the field, the fence and the argument that hold them."""

MOST_ALTERNATIVES = 4
"""Most alternatives of one reply: each is a kernel of its own."""

_LINE = re.compile(r"[-*\s]*(?P<branch>\w[\w-]{0,39})\s*:\s*(?P<order>\S.*)")
_NAMES, _TEXTS = ("branch", "name"), ("order", "text", "task")


def alternatives_of(value: object) -> Alternatives:
    """Return the alternatives in a list of objects, or in lines ``NAME: order``.

    Raises:
        ValueError: If there are none or too many, or two have the same name.
    """
    orders = tuple(_orders(value))
    if not 0 < len(orders) <= MOST_ALTERNATIVES:
        raise ValueError(
            f"{ALTERNATIVES} must be 1 to {MOST_ALTERNATIVES} orders, each with the name of its"
            f" branch; there are {len(orders)}."
        )
    if len({order.branch for order in orders}) < len(orders):
        raise ValueError("Two alternatives have the same branch; name each its own.")
    return Alternatives(orders)


def as_text(orders: Iterable[BranchOrder]) -> str:
    """Return alternatives in lines ``NAME: order``."""
    return "\n".join(f"{order.branch}: {order.text}" for order in orders)


def as_arguments(orders: Iterable[BranchOrder]) -> dict[str, Any]:
    """Return alternatives as the arguments of their call."""
    return {ALTERNATIVES: [{"branch": order.branch, "order": order.text} for order in orders]}


def kept_alternatives(post: Post) -> tuple[BranchOrder, ...]:
    """Return the alternatives that a post orders; empty for none."""
    items = post.get_attachment(AttachmentType.alternatives)
    extra = items[-1].extra if items else None
    return tuple(_orders(extra.get(ALTERNATIVES))) if isinstance(extra, Mapping) else ()


def _orders(value: object) -> list[BranchOrder]:
    if isinstance(value, str):
        text = value.strip()
        value = json_value(text) if text.startswith(("[", "{")) else None
        if value is None:
            return _of_lines(text)
    if isinstance(value, Mapping):
        is_named = all(isinstance(order, str) for order in value.values())
        is_one = is_named and _first(value, _TEXTS)
        items = [value] if is_one else [{"branch": k, "order": v} for k, v in value.items()]
        return _of_objects(items)
    return _of_objects(value) if isinstance(value, Sequence) else []


def _of_objects(items: Iterable[object]) -> list[BranchOrder]:
    found = []
    for item in items:
        if isinstance(item, Mapping):
            branch, text = _first(item, _NAMES), _first(item, _TEXTS)
            if branch and text:
                found.append(BranchOrder(branch, text))
    return found


def _first(item: Mapping[str, object], names: Iterable[str]) -> str:
    return next((str(item[name]).strip() for name in names if item.get(name)), "")


def _of_lines(text: str) -> list[BranchOrder]:
    """Read lines ``NAME: order``; a line without a name goes on with the order before it."""
    found: list[BranchOrder] = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line.rstrip())
        if match is not None:
            found.append(BranchOrder(match["branch"], match["order"]))
        elif found and line.strip():
            last = found.pop()
            found.append(BranchOrder(last.branch, f"{last.text}\n{line.strip()}"))
    return found
