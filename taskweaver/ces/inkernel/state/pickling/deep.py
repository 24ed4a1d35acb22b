"""A second try for deeply nested objects, in a thread with a large stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

_STACK_BYTES = 1 << 30
_RECURSION_LIMIT = 200_000
_Result = TypeVar("_Result")


def with_deep_stack(job: Callable[[], _Result]) -> _Result:
    """Run a job; after a `RecursionError` once more with room for 200,000 levels.

    Raises:
        RecursionError: If that was not enough either.
    """
    try:
        return job()
    except RecursionError:
        return _in_deep_thread(job)


def _in_deep_thread(job: Callable[[], _Result]) -> _Result:
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(job())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        thread = threading.Thread(target=run, name="deep state")
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]
