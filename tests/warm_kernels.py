"""Warm processes for all tests of a worker, from which kernels start ten times as fast.

Where the start of a kernel is not the subject of a test, its kernel is forked from a process that
has been there since the first such test, as an application with `execution.zygote` does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from taskweaver.ces import manager
from taskweaver.ces.environment import kernel_environment, python_command
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process import process
from taskweaver.ces.process.process import KernelProcess, start_kernel
from taskweaver.ces.sandbox import sandbox_start
from taskweaver.ces.sandbox.sandbox_start import SandboxPlan
from taskweaver.ces.sandbox.session_sandbox import SessionSandboxes
from taskweaver.ces.sandbox.warmth import sandbox_template
from taskweaver.ces.template.template import Template, warm_template
from taskweaver.ces.template.zygote import Zygote
from taskweaver.utils.system.platform import HAS_LIVE_FORKS

_new_zygote = manager.KernelManager._new_zygote
_start_early = Kernel.start


class WarmKernels:
    """Kernels and sandboxes of the warm processes that all applications of a worker share.

    A kernel whose limits or environment are not the usual ones starts as its application asks.

    Attributes:
        log_path: File for what the warm processes print.
    """

    def __init__(self, log_path: Path, keeper: ThreadPoolExecutor, limits: KernelLimits) -> None:
        """Prepare it; nothing runs yet.

        Args:
            log_path: File for what the warm processes print.
            keeper: One thread, which the warm processes end with.
            limits: The usual limits.
        """
        self.log_path = log_path
        self._keeper = keeper
        self._limits = limits
        self._usual = _birthright(self._limits)
        self._zygotes: dict[str, Zygote] = {}
        self._templates: dict[str, Template | None] = {}

    @property
    def pids(self) -> set[int]:
        """Process ids of the warm processes."""
        return {template.pid for template in list(self._templates.values()) if template is not None}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have applications start kernels from the warm processes, and only when they are used.

        An application starts a kernel as soon as a session opens. Two of five tests run no code.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kernel, "start", lambda _: None)
            patch.setattr(manager, "start_kernel", self._start)
            patch.setattr(manager, "SessionSandboxes", self._sandboxes)
            patch.setattr(manager.KernelManager, "_new_zygote", lambda own: self._new_zygote(own))
            yield

    @contextmanager
    def early(self) -> Iterator[None]:
        """Have applications start kernels as soon as a session opens."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kernel, "start", _start_early)
            yield

    @contextmanager
    def out_of_use(self) -> Iterator[None]:
        """Have applications start kernels by themselves."""
        with pytest.MonkeyPatch.context() as patch, self.early():
            patch.setattr(self, "_is_usual", lambda _limits: False)
            yield

    def close(self) -> None:
        """End the warm processes; others are there for the next kernels."""
        self._templates = {}
        for zygote in self._zygotes.values():
            self._keeper.submit(zygote.close).result()

    def _start(self, cwd: Path, log_path: Path, limits: KernelLimits) -> KernelProcess:
        """Start a kernel without a sandbox; it is not ready yet."""
        if self._is_usual(limits):
            template = self.shared(None)
            if template is not None:
                return template.spawn(cwd, log_path)
        return start_kernel(cwd, log_path, limits)

    def _is_usual(self, limits: KernelLimits) -> bool:
        return HAS_LIVE_FORKS and _birthright(limits) == self._usual

    def _new_zygote(self, own: manager.KernelManager) -> Zygote:
        """Return the keeper of an application's warm process: the shared one, or its own."""
        plan, limits = own._plan, own._limits
        return _Kept(self, plan) if self._is_usual(limits) else _new_zygote(own)

    def _sandboxes(self, plan: SandboxPlan, warm: Zygote | None) -> SessionSandboxes:
        """Return an application's sandboxes, which are entered from the shared warm process."""
        is_shared = warm is None and self._is_usual(plan.limits)
        return SessionSandboxes(plan, _Kept(self, plan) if is_shared else warm)

    def shared(self, plan: SandboxPlan | None) -> Template | None:
        """Return the warm process for a kind of sandbox, or for none; None if it does not start."""
        if plan is None:
            return self._template("none", partial(warm_template, self._limits, self.log_path))
        return self._template(plan.policy.tier, partial(sandbox_template, plan, self.log_path))

    def _template(
        self, tier: str, make: Callable[[Callable[[], bool]], Template]
    ) -> Template | None:
        zygote = self._zygotes.setdefault(tier, Zygote(make, self.log_path))
        self._templates[tier] = template = self._keeper.submit(zygote.template).result()
        return template


class _Kept(Zygote):
    """A keeper of a warm process that goes on after its application."""

    def __init__(self, kernels: WarmKernels, plan: SandboxPlan | None) -> None:
        super().__init__(lambda _: None, kernels.log_path)
        self._shared = partial(kernels.shared, plan)

    def template(self) -> Template | None:
        """Return the shared process."""
        return self._shared()


@contextmanager
def warm_kernels(log_path: Path, limits: KernelLimits) -> Iterator[WarmKernels]:
    """Give a starter of kernels of some limits, and end its warm processes at last."""
    with ThreadPoolExecutor(1, thread_name_prefix="warm-kernels") as keeper:
        keeper.submit(os.getpid).result()  # its thread was there before the first test
        kernels = WarmKernels(log_path, keeper, limits)
        yield kernels
        kernels.close()


@contextmanager
def lean_templates() -> Iterator[None]:
    """Start warm processes without the usual libraries, which take two thirds of their start.

    A cell imports what it uses. Where the libraries, or what they hold open, are the subject, the
    warm process has them.
    """

    def lean(kind: str, *given: str) -> list[str]:
        return python_command("template" if kind == "warm" else kind, *given)

    with pytest.MonkeyPatch.context() as patch:
        for module in (process, sandbox_start):
            patch.setattr(module, "python_command", lean)
        yield


def _birthright(limits: KernelLimits) -> tuple[Mapping[str, str], tuple[int, ...]]:
    """Return what a kernel takes over from the process that it is forked from."""
    return kernel_environment("any"), limits.for_launcher(0, 0)
