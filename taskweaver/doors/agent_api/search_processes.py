"""Processes of the searches that a server started; they end with it.

Each is a command `taskweaver search` that reads from a pipe of the server, and stops cleanly when
that is closed: when somebody stops the run, when the server ends, and when it is killed.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from taskweaver.ces.process.homes import remove_folder
from taskweaver.server.errors import RequestRefused, conflict, stopping
from taskweaver.utils.files import write_json
from taskweaver.utils.ids import create_id

MOST_RUNNING = 4
"""Most searches that a server runs at once."""

_MOST_KEPT = 20
_TAIL_BYTES = 16 << 10
_BEGUN = re.compile(rb"^run: (.+)\n", re.MULTILINE)
_REASON_CHARS = 1_000
_ERROR = "error: "


class SearchProcesses:
    """The searches of a server. Finish and close it; it is used from one event loop."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """Prepare to run searches.

        Args:
            command: That of this program, up to its subcommand.
            folder: Folder of the project's runs.
        """
        self._command = command
        self._folder = folder
        self._processes: list[SearchProcess] = []
        self._is_stopping = False

    async def start(
        self, idea: str, files: Mapping[str, str], data: Mapping[str, str], options: Sequence[str]
    ) -> str:
        """Start a search of an idea; return the name of its run once that has begun.

        Args:
            idea: The idea, Markdown.
            files: Texts of files beside the idea, by name.
            data: Texts of files that attempts find in their folder ``data``, by name.
            options: Options of the command.

        Raises:
            RequestRefused: If too many run, the server stops, or the search does not begin.
        """
        kept = self._folder / ".data" / create_id()
        with tempfile.TemporaryDirectory(prefix="taskweaver-idea-") as folder:
            write_all(Path(folder), {**files, "idea.md": idea})
            if data:
                options = [*options, f"--resources={_resources(kept, data)}"]
            try:
                return await self._begun([str(Path(folder, "idea.md")), *options])
            except RequestRefused as error:
                remove_folder(kept)
                error.detail = error.detail.replace(folder, "the folder of the idea")
                raise

    async def resume(self, run: str, options: Sequence[str]) -> None:
        """Go on with a run by its full name; raises as `start`."""
        await self._begun([f"--resume={run}", *options])

    async def _begun(self, arguments: Sequence[str]) -> str:
        if self._is_stopping:
            raise stopping()
        if len(self._running) >= MOST_RUNNING:
            raise conflict(f"{MOST_RUNNING} searches run already; stop one, or wait.")
        process = SearchProcess()
        self._processes = [*self._running, *self._ended[-_MOST_KEPT:], process]
        try:
            options = ["search", "run", "--plain", "--until_input_ends"]
            await process.start([*self._command, *options, *arguments])
            return await process.begun()
        except BaseException:
            process.stop()
            raise

    @property
    def _running(self) -> list[SearchProcess]:
        return [process for process in self._processes if not process.has_ended]

    @property
    def _ended(self) -> list[SearchProcess]:
        return [process for process in self._processes if process.has_ended]

    def of(self, run: str) -> SearchProcess:
        """Return the process that works on a run, else the last one that did, else an ended one."""
        found = [process for process in self._processes if process.name == run] or [_ELSEWHERE]
        return next((one for one in found if not one.has_ended), found[-1])

    def stop(self, run: str) -> None:
        """Let a run stop cleanly, which takes a while.

        Raises:
            RequestRefused: If this server does not work on it.
        """
        process = self.of(run)
        if process.has_ended:
            raise conflict(f"This server does not work on the run {run[:128]}.")
        process.stop()

    async def finish(self, grace_s: float) -> None:
        """Start no more, and stop those that run; within a time they may keep what they have."""
        self._is_stopping = True
        running = self._running
        for process in running:
            process.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await asyncio.gather(*(process.ended() for process in running))

    async def close(self) -> None:
        """End those that still run, by force; safe to call again."""
        await self.finish(0)
        for process in self._running:
            process.kill()
        await asyncio.gather(*(process.ended() for process in self._running))


class SearchProcess:
    """A process that works on a run.

    Attributes:
        name: Name of the run; empty before it has begun.
        is_stopping: Whether it was told to stop.
        has_ended: Whether it has ended; one that has not started has not.
    """

    def __init__(self) -> None:
        self.name = ""
        self.is_stopping = False
        self.has_ended = False
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._tail = bytearray()

    @property
    def output(self) -> str:
        """The last lines that it printed."""
        text = self._tail.decode("utf-8", "replace")
        return text if len(self._tail) < _TAIL_BYTES else text.partition("\n")[2]

    async def start(self, command: Sequence[str]) -> None:
        """Start it, in a session of its own: a signal of the terminal is not for it.

        Raises:
            RequestRefused: If that cannot be done.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=STDOUT, start_new_session=True
            )
        except BaseException as error:
            self.has_ended = True
            if isinstance(error, OSError):
                raise _not_begun(f"The process cannot start: {error.strerror}.") from error
            raise
        self._reader = asyncio.ensure_future(self._read(self._process))
        if self.is_stopping:
            self.stop()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while chunk := await process.stdout.read(_TAIL_BYTES):
                self._tail += chunk
                found = None if self.name else _BEGUN.search(self._tail)
                if found is not None:
                    self.name = Path(os.fsdecode(found[1].strip())).name
                    self._changed.set()
                del self._tail[:-_TAIL_BYTES]
            await process.wait()
        finally:
            self.has_ended = True
            self._changed.set()

    async def begun(self) -> str:
        """Wait until its run has begun; return the name of that.

        Raises:
            RequestRefused: If it ended before.
        """
        await self._changed.wait()
        if not self.name:
            raise _not_begun(_reason(self.output) or "The process ended without a word.")
        return self.name

    def stop(self) -> None:
        """Tell it to stop."""
        self.is_stopping = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End it at once; its workers end with it, and the run can be gone on with."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait for its end."""
        if self._reader is not None:
            await asyncio.wait([self._reader])


_ELSEWHERE = SearchProcess()
_ELSEWHERE.has_ended = True


def _resources(folder: Path, data: Mapping[str, str]) -> Path:
    """Keep the data of a run's attempts in a folder; return the file of resources that has them."""
    place = folder / "data"
    place.mkdir(parents=True)
    write_all(place, data)
    source = {"name": "data", "host_path": str(place), "mount_path": "/workspace/data"}
    usual = {"class": "dataset", "source": "local", "resource": "data"}
    items = [{"name": name, "path": name, **usual} for name in data]
    write_json(folder / "resources.json", {"local": [source], "items": items})
    return folder / "resources.json"


def write_all(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts into files of a folder, by name."""
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")


def _reason(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(lines) if line.startswith(_ERROR)]
    told = lines[errors[-1] :] if errors else lines[-3:]
    return " ".join(told).removeprefix(_ERROR)[:_REASON_CHARS]


def _not_begun(detail: str) -> RequestRefused:
    return RequestRefused(409, "search-not-begun", detail)
