"""Spans around the methods of roles; `Tracing` under the import path roles have used for long."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from taskweaver.logging.tracing import Tracing

__all__ = ["Tracing", "tracing_decorator"]

P = ParamSpec("P")
R = TypeVar("R")


def tracing_decorator(method: Callable[P, R]) -> Callable[P, R]:
    """Record each call of a method as a span, by the `tracing` of its object."""

    @functools.wraps(method)
    def traced(*args: P.args, **kwargs: P.kwargs) -> R:
        owner: Any = args[0]
        with owner.tracing.span(f"{type(owner).__name__}.{method.__name__}"):
            return method(*args, **kwargs)

    return traced
