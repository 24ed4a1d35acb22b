"""The time of a state: when the newest row of it was written."""

from __future__ import annotations

import sqlite3

from taskweaver.memory.branched.storage.schema import TIERS

_DATED = (*(table for table in TIERS if table != "exclusions"), "injections")
_NEWEST = " UNION ALL ".join(
    f"SELECT * FROM (SELECT seq, created_at FROM {table} WHERE seq <= :at"
    " ORDER BY seq DESC LIMIT 1)"
    for table in _DATED
)
_TIME = f"SELECT created_at FROM ({_NEWEST}) ORDER BY seq DESC LIMIT 1"


def time_of(connection: sqlite3.Connection, at: int) -> float:
    """Return when the newest row up to a sequence number was written, in whichever table.

    Args:
        connection: Open on the file.
        at: The sequence number.

    Returns:
        Seconds since 1970; 0 where there is no row, and so nothing that could expire.
    """
    row = connection.execute(_TIME, {"at": at}).fetchone()
    return float(row[0]) if row else 0.0
