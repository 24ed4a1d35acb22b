"""Sockets that belong to idle connections of HTTP clients.

A forked process sees the connection as dropped by the server, and connects anew.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

_HTTPCORE = ("httpcore", "httpcore2")


def idle_sockets() -> set[int]:
    """Return the file numbers of all sockets in the pools of urllib3 and httpcore that are idle.

    It looks through all objects, so call it only when there is a socket to explain.
    """
    # By identity: a class may forbid that it is hashed.
    kinds = {id(kind): numbers for kind, numbers in _kinds()}
    if not kinds:
        return set()
    found = set[int]()
    for thing in gc.get_objects():
        numbers = kinds.get(id(type(thing)))
        if numbers is None:
            continue
        try:
            found.update(numbers(thing))
        except (AttributeError, OSError, TypeError, ValueError):
            continue  # another version of the library, or a closed socket: it stays unexplained
    return found - {-1}


def _kinds() -> Iterator[tuple[type, Callable[[Any], Iterator[int]]]]:
    urllib3: Any = sys.modules.get("urllib3")
    if urllib3 is not None:
        yield urllib3.HTTPConnectionPool, _of_urllib3
        yield urllib3.HTTPSConnectionPool, _of_urllib3
    for name in _HTTPCORE:
        httpcore: Any = sys.modules.get(name)
        if httpcore is not None:
            yield httpcore.ConnectionPool, _of_httpcore


def _of_urllib3(pool: Any) -> Iterator[int]:
    # A connection in use is not in the queue.
    for connection in list(pool.pool.queue if pool.pool is not None else ()):
        if connection is not None and connection.sock is not None:
            yield connection.sock.fileno()


def _of_httpcore(pool: Any) -> Iterator[int]:
    for connection in pool.connections:
        if connection.is_idle():
            stream = connection._connection._network_stream  # noqa: SLF001 - no public name
            yield stream.get_extra_info("socket").fileno()
