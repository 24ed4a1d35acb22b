"""Names of signals."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """Return the name of a signal; most of the real-time ones have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
