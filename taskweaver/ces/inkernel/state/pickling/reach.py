"""The path from a variable to an object inside it."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from typing import Any

_MAX_STEPS = 20


def path_to(name: str, value: Any, target: Any, among: Mapping[int, Any]) -> str:
    """Return an expression that leads from a variable to an object, as far as it is known.

    It passes through the objects of `among`, which are by id.
    """
    parents: dict[int, tuple[Any, Any]] = {id(value): (None, value)}
    level = [value]
    while level and id(target) not in parents:
        following = []
        for parent in level:
            for child in _held(parent):
                is_new = id(child) not in parents
                if is_new and (child is target or id(child) in among):
                    parents[id(child)] = (parent, child)
                    following.append(child)
        level = following
    if id(target) not in parents:
        return f"{name}..."
    chain = [target]
    while chain[-1] is not value:
        chain.append(parents[id(chain[-1])][0])
    chain.reverse()
    return name + "".join(_steps(chain)[:_MAX_STEPS])


def _held(parent: Any) -> Iterable[Any]:
    state = getattr(parent, "__dict__", None) if not isinstance(parent, type) else None
    return [*gc.get_referents(parent), *([state] if isinstance(state, dict) else [])]


def _steps(chain: list[Any]) -> list[str]:
    steps = []
    for number, parent in enumerate(chain[:-1]):
        child = chain[number + 1]
        is_state = child is getattr(parent, "__dict__", None)
        if is_state:
            continue  # the attribute is named at the next step
        holder = chain[number - 1] if number else None
        attributes = getattr(holder, "__dict__", None) is parent
        steps.append(_step(parent, child, is_attribute=attributes))
    return steps


def _step(parent: Any, child: Any, *, is_attribute: bool) -> str:
    if isinstance(parent, dict):
        key = next((key for key, item in parent.items() if item is child), "?")
        return f".{key}" if is_attribute else f"[{str(key)[:60]!r}]"
    if isinstance(parent, list | tuple):
        return f"[{next(n for n, item in enumerate(parent) if item is child)}]"
    facts = getattr(parent, "__dict__", None)
    if isinstance(facts, dict):
        for key, item in facts.items():
            if item is child:
                return f".{key}"
    return f".<{type(child).__name__}>"
