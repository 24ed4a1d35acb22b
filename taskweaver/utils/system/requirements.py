"""Commands that install the packages of an extra, by their own names.

This package is not on PyPI, where anyone may take its name: ``pip install`` of an extra of it would
install the code of strangers.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

_DISTRIBUTION = "taskweaver"


def requirements(extra: str = "") -> list[str]:
    """Return the requirements of an extra that apply to this system, as pip takes them.

    Args:
        extra: Name of the extra; empty for the package itself.

    Returns:
        Names with their versions, in the order of the package's metadata; none when the package
        is not installed and has no metadata.
    """
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for requirement in map(Requirement, lines):
        marker, requirement.marker = requirement.marker, None
        is_core = marker is None or marker.evaluate({"extra": ""})
        if is_core is not bool(extra) and (marker is None or marker.evaluate({"extra": extra})):
            found.append(str(requirement))
    return found


def missing(extra: str = "") -> list[str]:
    """Return the requirements of an extra whose package is not installed; see `requirements`."""
    return absent(requirements(extra))


def absent(lines: Iterable[str]) -> list[str]:
    """Return the requirements whose package is not installed, in any version."""
    from packaging.requirements import Requirement

    def is_installed(name: str) -> bool:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            return False
        return True

    return [line for line in lines if not is_installed(Requirement(line).name)]


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    return command(requirements(extra)) or f"install the packages of its extra `{extra}`"


def command(lines: list[str]) -> str:
    """Return the command that installs requirements; empty for none."""
    quoted = " ".join(f'"{line}"' for line in lines)
    return f"python -m pip install {quoted}" if lines else ""
