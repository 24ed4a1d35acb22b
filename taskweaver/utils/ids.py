"""Ids: made in one place, readable, sortable by time."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def create_id(prefix: str = "", *, length: int = 8) -> str:
    """Return ``[prefix-]YYYYMMDD-HHMMSS-<hex>`` in UTC, with `length` random digits at the end.

    The prefix is the kind of thing that the id names, e.g. ``post``.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    digits = os.urandom((length + 1) // 2).hex()[:length]
    return "-".join(filter(None, (prefix, stamp, digits)))
