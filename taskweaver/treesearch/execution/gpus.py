"""The GPUs of this machine, and the devices that programs need to use them.

A program numbers the GPUs it can open, so where it is shown only its own, a number means another
one than outside. A UUID does not: jobs are given the UUID of their GPU.
"""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path

VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Names the GPUs of a process, by numbers or UUIDs; AMD's programs read it too."""
_DEV = Path("/dev")
_DRIVER = Path("/proc/driver/nvidia/gpus")  # NVIDIA's driver describes its GPUs there
_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_ALL = ("nvidia[0-9]*", "nvidia-caps/*", "kfd", "dri/renderD*")


def gpus(dev: Path = _DEV, driver: Path = _DRIVER) -> tuple[str, ...]:
    """Return the GPUs that may be used, by UUID where it is known; none where there are none."""
    known = list(_known(dev, driver))
    named = os.environ.get(VARIABLE)
    if named is None:
        return tuple(known)
    return tuple(
        known[int(name)] if name.isdecimal() and int(name) < len(known) else name
        for name in _names(named)
    )


def devices_of(named: str, dev: Path = _DEV, driver: Path = _DRIVER) -> tuple[Path, ...]:
    """Return the devices of GPUs, and those that all programs need which use one.

    Numbers keep their meaning only where all GPUs are there; so numbers and unknown names, as of a
    part of one or one that is not NVIDIA's, bring the devices of all. `VARIABLE`
    names the GPUs so; an empty text is none.
    """
    names, known = _names(named), _known(dev, driver)
    if not names:
        return ()
    fitting = [[known[uuid] for uuid in known if uuid.startswith(name)] for name in names]
    own = {device for devices in fitting for device in devices}
    if not all(fitting):
        own = {device for pattern in _ALL for device in dev.glob(pattern)}
    return (*sorted(own), *(dev / name for name in _SHARED if (dev / name).exists()))


def _names(named: str) -> list[str]:
    """Return the names in a list; -1 ends it."""
    names = (name.strip() for name in named.split(","))
    return [name for name in takewhile(lambda name: not name.startswith("-"), names) if name]


def _known(dev: Path, driver: Path) -> dict[str, Path]:
    """Return the device of each of NVIDIA's GPUs by its UUID, in the order of ``nvidia-smi``."""
    found = {}
    for file in sorted(driver.glob("*/information")):
        lines = (line.partition(":") for line in file.read_text().splitlines())
        facts = {name.strip(): value.strip() for name, _, value in lines}
        device = dev / f"nvidia{facts.get('Device Minor')}"
        if device.exists():  # a container shows what it was not given, too
            found[facts.get("GPU UUID", "")] = device
    return found
