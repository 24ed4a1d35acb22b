"""State of the process beside the namespace: random generators, options, environment."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

_PARTS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "random": (random.getstate, random.setstate),
}


def process_state() -> dict[str, Any]:
    """Return the state of the process, by part."""
    return {name: read() for name, (read, _) in _PARTS.items()}


def restore_process(name: str, value: Any) -> None:
    """Restore one part of the process's state."""
    _PARTS[name][1](value)
