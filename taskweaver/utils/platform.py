"""The systems this package runs on."""

from __future__ import annotations

import sys

from taskweaver.errors import TaskWeaverError


class UnsupportedPlatform(TaskWeaverError, ImportError):
    """This system cannot run sessions."""

    def __str__(self) -> str:
        """Name the system, and where it works instead."""
        return (
            f"TaskWeaver runs on Linux, not on {sys.platform}; on Windows use WSL 2, elsewhere a"
            " container or a virtual machine with Linux."
        )


def require_linux() -> None:
    """Check that this is Linux: kernels, sandbox and session files need calls of its own.

    Raises:
        UnsupportedPlatform: If it is not.
    """
    if sys.platform != "linux":
        raise UnsupportedPlatform
