"""Errors of kernels. A cell that fails is a result, not an error."""

from __future__ import annotations

from taskweaver.errors import RemediedError


class KernelError(RemediedError):
    """A kernel cannot carry out a request."""


class KernelStartFailed(KernelError):
    """The kernel process did not come up."""


class ForkRefused(KernelError):
    """A kernel cannot be forked now.

    Attributes:
        reasons: Why, a phrase each.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__(f"The kernel cannot be forked: {'; '.join(reasons)}.")
        self.reasons = list(reasons)


class SandboxUnavailable(KernelError):
    """The sandbox that was asked for cannot be had here."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"No sandbox: {reason}.", "Set execution.sandbox to none to go without.")
        self.reason = reason


class KernelInterrupted(KernelError):
    """An interrupt came before the kernel was ready for the operation."""


class KernelClosed(KernelError):
    """The client was stopped."""


class PluginLoadFailed(KernelError):
    """A plugin's code raised while being loaded into the kernel."""
