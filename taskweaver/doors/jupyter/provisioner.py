"""The kernel provisioner of Jupyter: its kernels come from a warm process, in a sandbox.

`jupyter_client` finds it by an entry point. A kernel starts with all the data of another one of the
same program where it is asked for by ``start_kernel(fork_of=KERNEL_ID)``.
"""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from taskweaver.ces.process.process import KernelProcess
from taskweaver.doors.jupyter.notebook_kernels import NOTEBOOK_KERNELS, NotebookKernel

_DIED = 1


class TaskWeaverProvisioner(KernelProvisionerBase):
    """Starts, forks and ends the kernel of a notebook."""

    _kernel: NotebookKernel | None = None
    _fork_of = ""
    _has_launched = False

    @property
    def has_process(self) -> bool:
        """Whether there is a process."""
        return self._kernel is not None

    @property
    def _process(self) -> KernelProcess | None:
        return None if self._kernel is None else self._kernel.client.process

    async def poll(self) -> int | None:
        """Return None while the kernel runs, else a number."""
        process = self._process
        return None if process is not None and process.is_alive else _DIED

    async def wait(self) -> int | None:
        """Wait for the end of the process."""
        process = self._process
        if process is not None and process.is_alive:
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            loop.add_reader(process.death_fd, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(process.death_fd)
        await self._release()
        return 0

    async def send_signal(self, signum: int) -> None:
        """Send a signal: an interrupt interrupts the kernel, any other number but 0 ends it."""
        process = self._process
        if process is None or signum == 0:
            return
        if signum == signal.SIGINT:
            process.interrupt()
        else:
            process.kill()

    async def kill(self, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the base's
        """Kill the process."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Kill the process: it was asked to end before."""
        await self.send_signal(signal.SIGKILL)

    async def cleanup(self, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Give back what the kernel used."""
        await self._release()

    async def _release(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await asyncio.to_thread(NOTEBOOK_KERNELS.stop, str(self.kernel_id))

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Take the kernel to fork; a restart starts a fresh one."""
        self._fork_of = kwargs.pop("fork_of", "") if not self._has_launched else ""
        kwargs.pop("extra_arguments", None)
        prepared: dict[str, Any] = await super().pre_launch(cmd=[], **kwargs)
        return prepared

    async def launch_kernel(
        self,
        cmd: list[str],  # noqa: ARG002 - the base's signature
        **kwargs: Any,
    ) -> KernelConnectionInfo:
        """Start or fork the kernel; return how to reach it."""
        cwd, self._has_launched = Path(kwargs.get("cwd") or Path.cwd()), True
        id_, start = str(self.kernel_id), NOTEBOOK_KERNELS.start
        self._kernel = kernel = await asyncio.to_thread(start, id_, cwd, self._fork_of)
        facts = json.loads(kernel.file.read_text("utf-8"))
        facts["key"] = facts["key"].encode()
        self.connection_info = facts
        return self.connection_info
