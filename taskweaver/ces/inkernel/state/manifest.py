"""Facts of a manifest that are not variables: format and versions."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from typing import Any

FORMAT = 1
_COMPARED = ("numpy", "pandas")


def python_version() -> str:
    """Return the version of Python."""
    return platform.python_version()


def library_versions(kinds: Iterable[type]) -> dict[str, str]:
    """Return the versions of the libraries that define some types, by name of the library."""
    tops = {str(getattr(kind, "__module__", "")).partition(".")[0] for kind in kinds}
    return {top: version for top in sorted(tops) if (version := _version(top))}


def _version(name: str) -> str:
    version = getattr(sys.modules.get(name), "__version__", "")
    return version[:100] if isinstance(version, str) else ""


def version_problems(manifest: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each version that differs too much to rely on."""
    versions = {"python": manifest["python"], **manifest["versions"]}
    problems = []
    for name in ("python", *_COMPARED):
        stored = versions.get(name)
        present = python_version() if name == "python" else _present(name, stored)
        if stored and _minor(stored) != _minor(present):
            problems.append(f"stored with {name} {stored}, read with {present or 'none'}")
    return problems


def _present(name: str, stored: str | None) -> str:
    if not stored:
        return ""
    try:
        __import__(name)
    except ImportError:
        return ""
    return _version(name)


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
