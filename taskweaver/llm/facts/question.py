"""A short question to an endpoint, outside of a chat: bounded in time and size, never raising."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.llm.transport.endpoint import ConnectionPool, Sent
from taskweaver.llm.transport.exchange import Deadlines, HttpExchange
from taskweaver.utils.system.cancel import CancelToken

ASKING_S = 2.0
"""Longest time in seconds that an answer may take."""

MAX_BYTES = 4 << 20
_LIMITS = Deadlines(connect_s=1.0, first_token_s=ASKING_S, gap_s=ASKING_S, total_s=ASKING_S)


def answer_of(
    pool: ConnectionPool,
    path: str,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Return the JSON that an endpoint answers; None if there is none in time.

    Args:
        pool: Connections to the endpoint.
        path: Path after the endpoint's address, or a whole address at the same host.
        body: Body of a POST; None for a GET.
        headers: Headers beyond the client's own.
    """
    sent = Sent(path, body or {}, headers or {}, "GET" if body is None else "POST")
    read = bytearray()
    try:
        with HttpExchange(pool, sent, _LIMITS, CancelToken()) as exchange:
            for block in exchange.blocks():
                read += block
                if len(read) > MAX_BYTES:
                    return None
        return json.loads(bytes(read))
    except (ModelError, ValueError, RecursionError):
        return None  # nothing is known then
