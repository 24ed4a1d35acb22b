"""Keeps a process warm that kernels, and templates in sandboxes, are forked from."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from taskweaver.ces.errors import ForkRefused, SandboxUnavailable
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.process import KernelProcess, start_kernel
from taskweaver.ces.template import IsWanted, Template

Stamp = tuple[tuple[str, int], ...]


class Zygote:
    """Keeper of a template with the usual libraries, for any thread.

    The system ends the template with the thread that started it, so threads that ask for it live as
    long as it.

    Attributes:
        problem: Why the last kernel did not start from it; else empty.
    """

    def __init__(self, make: Callable[[IsWanted], Template], log_path: Path) -> None:
        """Prepare the keeper, without running anything yet.

        `make` starts the template, given a function that returns whether to go on waiting;
        `log_path` gets the reasons where none is kept.
        """
        self.problem = ""
        self._make = make
        self._log_path = log_path
        self._template: Template | None = None
        self._stamp: Stamp | None = None
        self._lock = threading.Lock()
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Wait no longer for the template to come up, from any thread."""
        self._given_up.set()

    def _is_wanted(self) -> bool:
        return not self._given_up.is_set()

    def template(self) -> Template | None:
        """Return the template, started if missing, or None after a failed start.

        It is started anew when libraries were installed or removed since, or when it has ended.
        One that does not start is not tried again with the same libraries; the log says why.
        """
        with self._lock:
            stamp = _libraries()
            has_ended = self._template is not None and self._template.has_ended()
            if self._is_wanted() and (stamp != self._stamp or has_ended):
                self._replace(stamp)
            return self._template

    def _replace(self, stamp: Stamp) -> None:
        self._close()
        self._stamp = stamp
        self.problem = ""
        try:
            self._template = self._make(self._is_wanted)
        except (ForkRefused, SandboxUnavailable, OSError, ValueError) as error:
            if self._is_wanted():
                self.note(f"no kernel is kept warm: {error}")

    def note(self, problem: str) -> None:
        """Write to the log why a kernel does not start from the template."""
        self.problem = problem
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with self._log_path.open("a") as log:
            log.write(f"{problem}\n")

    def close(self) -> None:
        """End the template. Forked kernels live on."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        template, self._template = self._template, None
        self._stamp = None
        if template is not None:
            template.close()


def start_warm(zygote: Zygote, limits: KernelLimits, cwd: Path, log_path: Path) -> KernelProcess:
    """Start a kernel, not ready yet, from a warm template or from nothing.

    Raises:
        OSError: If the process cannot be started.
    """
    template = zygote.template()
    if template is not None:
        try:
            return template.spawn(cwd, log_path)
        except ForkRefused as error:
            zygote.note(f"a kernel was not forked: {error}")
    return start_kernel(cwd, log_path, limits)


def _libraries() -> Stamp:
    """Return when something was last installed in each folder that modules come from."""
    folders = (Path(entry) for entry in sys.path if entry.endswith("-packages"))
    return tuple((str(path), path.stat().st_mtime_ns) for path in folders if path.is_dir())
