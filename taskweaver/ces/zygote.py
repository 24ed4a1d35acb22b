"""Starts kernels: from a warm template where there is one, else from nothing."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process import KernelProcess, start_kernel
from taskweaver.ces.template import Template, warm_template

Stamp = tuple[tuple[str, int], ...]


class Zygote:
    """Keeps a template with the usual libraries. For one thread, the launcher's."""

    def __init__(self, limits: KernelLimits, log_path: Path) -> None:
        self._limits = limits
        self._log_path = log_path
        self._template: Template | None = None
        self._stamp: Stamp = ()
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Wait no longer for the template to come up; for any thread."""
        self._given_up.set()

    def _is_wanted(self) -> bool:
        return not self._given_up.is_set()

    def prepare(self) -> None:
        """Start the template; a new one when libraries were installed or removed since.

        Where it does not start, kernels start from nothing; the log says why.
        """
        stamp = _libraries()
        if not self._is_wanted() or (self._template is not None and stamp == self._stamp):
            return
        self.close()
        self._stamp = stamp
        try:
            self._template = warm_template(self._limits, self._log_path, self._is_wanted)
        except (ForkRefused, OSError) as error:
            if not self._is_wanted():
                return
            self._log_path.parent.mkdir(parents=True, exist_ok=True)
            with self._log_path.open("a") as log:
                log.write(f"no kernel is kept warm: {error}\n")

    def start(self, cwd: Path, log_path: Path) -> KernelProcess:
        """Start a kernel; it is not ready yet.

        Raises:
            OSError: If the process cannot be started.
        """
        self.prepare()
        if self._template is not None:
            try:
                return self._template.spawn(cwd, log_path)
            except ForkRefused:
                self.close()  # it was killed; the next kernel gets a new one
        return start_kernel(cwd, log_path, self._limits)

    def close(self) -> None:
        """End the template; its kernels live on."""
        template, self._template = self._template, None
        self._stamp = ()
        if template is not None:
            template.close()


def _libraries() -> Stamp:
    """Return when something was last installed in each folder that modules come from."""
    folders = (Path(entry) for entry in sys.path if entry.endswith("-packages"))
    return tuple((str(path), path.stat().st_mtime_ns) for path in folders if path.is_dir())
