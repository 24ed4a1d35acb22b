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
        allowed_hosts: Hosts it may reach by a proxy when it may not use the network; with
            bubblewrap only.
        tier: What keeps it: namespaces, or rights that are given up.
    """

    has_network: bool = False
    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    tier: Tier = "bwrap"
