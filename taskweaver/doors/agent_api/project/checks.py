"""The checks of `taskweaver doctor`, by a process of their own: they start kernels and servers."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from pydantic import TypeAdapter, ValidationError

from taskweaver.doors.agent_api.project.models import DoctorCheck
from taskweaver.server.errors import RequestRefused, stopping

_LIMIT_S = 300.0
_CHECKS = TypeAdapter(list[DoctorCheck])


class ProjectChecks:
    """Checks of a project. Who asks while they run waits for the same result. Close it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Prepare to check; `command` is that of this program, up to its subcommand."""
        self._command = [*command, "doctor", "--json"]
        self._running: asyncio.Task[list[DoctorCheck]] | None = None
        self._process: Process | None = None
        self._is_closed = False

    async def run(self) -> list[DoctorCheck]:
        """Return the result of the checks.

        Raises:
            RequestRefused: If they do not end in time, or say nothing, or the server stops.
        """
        if self._is_closed:
            raise stopping()
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._checked())
        return await asyncio.shield(self._running)  # others wait for it too

    async def _checked(self) -> list[DoctorCheck]:
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        try:
            if self._is_closed:
                raise stopping()
            async with asyncio.timeout(_LIMIT_S):
                told, errors = await process.communicate()
        except TimeoutError:
            detail = f"The checks did not end within {_LIMIT_S:.0f} s."
            raise RequestRefused(503, "checks-failed", detail) from None
        finally:
            await self._end()
        if self._is_closed:
            raise stopping()
        try:
            return _CHECKS.validate_json(told)
        except ValidationError:
            why = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:500]
            detail = f"The checks ended without a result. {why}".strip()
            raise RequestRefused(503, "checks-failed", detail) from None

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def close(self) -> None:
        """End the checks that run; safe to call again."""
        self._is_closed = True
        await self._end()
        if self._running is not None:
            await asyncio.wait([self._running])
