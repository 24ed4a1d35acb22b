"""What code may reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Tier = Literal["bwrap", "landlock"]


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What code may reach.

    Attributes:
        has_network: Whether it may use the network.
        read_only: Further paths it may read.
        writable: Further paths it may write.
        tier: What keeps it: namespaces, or rights that are given up.
    """

    has_network: bool = False
    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    tier: Tier = "bwrap"
