"""Policy for the files, hosts and devices of sandboxed code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Tier = Literal["bwrap", "landlock"]
HARDWARE = tuple(Path("/sys") / name for name in ("bus", "class", "dev", "devices", "module"))
"""What drivers of GPUs look up; CUDA does not start without it."""


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """Files, hosts and devices that sandboxed code may reach.

    Attributes:
        has_network: Whether it may use the network.
        read_only: Further paths it may read.
        writable: Further paths it may write.
        allowed_hosts: Hosts it may reach by a proxy when it may not use the network; with
            bubblewrap only.
        devices: Devices it may use, for example GPUs; with one come the files in which the system
            describes the machine's hardware.
        tier: Mechanism that enforces it: namespaces, or rights that are given up.
    """

    has_network: bool = False
    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    devices: tuple[Path, ...] = ()
    tier: Tier = "bwrap"

    @property
    def network(self) -> str:
        """The network in a few words."""
        if self.has_network:
            return "the network"
        hosts = ", ".join(self.allowed_hosts)
        return f"no network but {hosts}" if hosts else "no network"
