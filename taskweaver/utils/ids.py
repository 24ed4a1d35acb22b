"""Ids: made in one place, readable, sortable by time."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def create_id(prefix: str = "", *, length: int = 8) -> str:
    """Return ``[prefix-]YYYYMMDD-HHMMSS-<hex>`` in UTC, with `length` random digits at the end.

    The prefix is the kind of thing that the id names, e.g. ``post``.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    digits = secrets.token_hex((length + 1) // 2)[:length]
    return "-".join(part for part in (prefix, stamp, digits) if part)
