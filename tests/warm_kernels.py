"""One warm process for all tests of a worker, from which kernels start ten times as fast.

Where the start of a kernel is not the subject of a test, its kernel is forked from a process that
has been there since the first such test, as an application with `execution.zygote` does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from taskweaver.ces.environment import kernel_environment
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.process import KernelProcess, start_kernel
from taskweaver.ces.template.template import Template, warm_template
from taskweaver.ces.template.zygote import Zygote
from taskweaver.utils.system.platform import HAS_LIVE_FORKS


class WarmKernels:
    """Starts kernels without a sandbox, in place of `start_kernel`.

    A kernel whose limits or environment are not the usual ones starts from nothing.

    Attributes:
        template: The warm process; None while there is none.
    """

    def __init__(self, log_path: Path, keeper: ThreadPoolExecutor) -> None:
        """Prepare it; nothing runs yet.

        Args:
            log_path: File for what the warm process prints.
            keeper: One thread, which the warm process ends with.
        """
        self.template: Template | None = None
        self._limits = KernelLimits.default()
        self._zygote = Zygote(partial(warm_template, self._limits, log_path), log_path)
        self._keeper = keeper
        self._usual = _birthright(self._limits)

    def start(self, cwd: Path, log_path: Path, limits: KernelLimits) -> KernelProcess:
        """Start a kernel; it is not ready yet."""
        if HAS_LIVE_FORKS and _birthright(limits) == self._usual:
            self.template = self._keeper.submit(self._zygote.template).result()
            if self.template is not None:
                return self.template.spawn(cwd, log_path)
        return start_kernel(cwd, log_path, limits)

    def close(self) -> None:
        """End the warm process; another is there for the next kernel."""
        self.template = None
        self._keeper.submit(self._zygote.close).result()


@contextmanager
def warm_kernels(log_path: Path) -> Iterator[WarmKernels]:
    """Give a starter of kernels, and end its warm process at last."""
    with ThreadPoolExecutor(1, thread_name_prefix="warm-kernels") as keeper:
        keeper.submit(os.getpid).result()  # its thread was there before the first test
        kernels = WarmKernels(log_path, keeper)
        yield kernels
        kernels.close()


def _birthright(limits: KernelLimits) -> tuple[Mapping[str, str], tuple[int, ...]]:
    """Return what a kernel takes over from the process that it is forked from."""
    return kernel_environment("any"), limits.for_launcher(0, 0)
