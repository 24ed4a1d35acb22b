"""Spans under the import path that roles and plugins of the original use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from taskweaver.logging.spans import Operation
from taskweaver.logging.tracing import Tracing, get_tracer

__all__ = ["Tracing", "get_tracer", "tracing_decorator", "tracing_decorator_non_class"]

P = ParamSpec("P")
R = TypeVar("R")


def tracing_decorator(method: Callable[P, R]) -> Callable[P, R]:
    """Record each call of a method as a span, by the `tracing` of the object."""

    @functools.wraps(method)
    def traced(*args: P.args, **kwargs: P.kwargs) -> R:
        owner: Any = args[0]
        tracing: Tracing = getattr(owner, "tracing", None) or Tracing.newest()
        with tracing.running(Operation(f"{type(owner).__name__}.{method.__name__}")):
            return method(*args, **kwargs)

    return traced


def tracing_decorator_non_class(function: Callable[P, R]) -> Callable[P, R]:
    """Record each call of a function as a span, by the application opened last."""

    @functools.wraps(function)
    def traced(*args: P.args, **kwargs: P.kwargs) -> R:
        with Tracing.newest().running(Operation(function.__name__)):
            return function(*args, **kwargs)

    return traced
