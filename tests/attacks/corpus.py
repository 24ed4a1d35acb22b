"""All attacks, in the order of the table."""

from __future__ import annotations

from attacks import (
    bypasses,
    deputies,
    probes_files,
    probes_network,
    probes_processes,
    probes_resources,
    probes_system,
)
from attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = (
    *probes_files.ATTACKS,
    *probes_processes.ATTACKS,
    *probes_network.ATTACKS,
    *probes_system.ATTACKS,
    *bypasses.ATTACKS,
    *probes_resources.ATTACKS,
    *deputies.ATTACKS,
)
