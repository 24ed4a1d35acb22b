"""Public types of the execution service: results, artifacts, and the protocols of kernels."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.errors import ForkRefused, KernelError, PluginLoadFailed
from taskweaver.ces.hostcalls import HostFunctions
from taskweaver.ces.process.footprint import Footprint
from taskweaver.ces.state_transfer import Origin, StateWriter
from taskweaver.tables.plans.plan import TableRead
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name

CellStatus = Literal["ok", "error", "timeout", "interrupted", "died", "refused"]
Stream = Literal["stdout", "stderr"]
OutputHandler = Callable[[Stream, str], None]


@dataclass(slots=True)
class ExecutionArtifact:
    """A file, figure, table or document a cell produced.

    Attributes:
        name: Id, unique in the session.
        type: ``chart df file txt svg html image``.
        mime_type: MIME type, empty when unknown.
        original_name: Name its author gave it.
        file_name: Path relative to the session's working directory, always inside it.
        file_content: Content kept in memory; empty when the file holds it.
        file_content_encoding: ``str`` or ``base64``.
        preview: A short text that stands for it.
        download_url: Where to fetch it; empty for local files.
    """

    name: str = ""
    type: str = "file"
    mime_type: str = ""
    original_name: str = ""
    file_name: str = ""
    file_content: str = ""
    file_content_encoding: str = "str"
    preview: str = ""
    download_url: str = ""


@dataclass(frozen=True, slots=True)
class PluginCall:
    """A call of a plugin in a cell.

    Attributes:
        name: The plugin.
        began_s: When it began, in seconds since the cell did.
        duration_s: How long it took in seconds.
        error: Type of the error it ended with; empty for none.
    """

    name: str
    began_s: float
    duration_s: float
    error: str


@dataclass(slots=True)
class ExecutionResult:
    """Result of one cell.

    Attributes:
        execution_id: Id the caller gave.
        code: The code that ran.
        is_success: Whether it ran to its end without an error.
        error: Traceback or explanation, without colours; None on success.
        output: Value of the last expression as JSON-like plain data or text; empty for none.
        stdout: Pieces of standard output, bounded.
        stderr: Pieces of standard error, bounded.
        log: Plugin log lines: level, tag, message.
        artifact: Files, figures and tables that it made.
        variables: Visible variables after the cell: name, short rendering.
        status: How the cell ended.
        is_state_lost: Whether the kernel was restarted, so that all variables are gone.
        is_truncated: Whether any output was left out.
        duration_s: Wall time in seconds.
        calls: Calls of plugins, as the kernel reports them.
        tables: Calls of `read_table`, as the kernel reports them.
    """

    execution_id: str
    code: str
    is_success: bool = False
    error: str | None = None
    output: Any = ""
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    log: list[tuple[str, str, str]] = field(default_factory=list)
    artifact: list[ExecutionArtifact] = field(default_factory=list)
    variables: list[tuple[str, str]] = field(default_factory=list)
    status: CellStatus = "ok"
    is_state_lost: bool = False
    is_truncated: bool = False
    duration_s: float = 0.0
    calls: list[PluginCall] = field(default_factory=list)
    tables: list[TableRead] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """Reason of the failure in a line, or "" on success."""
        if self.is_success:
            return ""
        return (self.error or self.status).strip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class PluginCode:
    """A plugin, as loaded by a kernel.

    Attributes:
        name: Name it is called by.
        source: Its code.
        config: Its configuration.
        file: The file the code is from; empty for none.
        helpers: Digest of the files beside it that it imports; a change loads it again.
        help: What `help` prints of it; empty for the documentation of its class.
    """

    name: str
    source: str
    config: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    helpers: str = ""
    help: str = ""


TABLE_CHARS = 4 << 20
"""Longest table, as text; longer ones lose rows at their end."""
_MOST_TABLES, _MOST_CHARS = 64, 64 << 20
"""Number and size of the tables that wait to be taken."""


@dataclass(frozen=True, slots=True)
class CellTable:
    """A table that a kernel reported, and that code in the kernel can forge.

    Attributes:
        exec_id: Id of the cell whose value it is.
        text: The table as JSON; see `inkernel.cell.report`.
    """

    exec_id: str
    text: str


class CellTables:
    """The newest tables of an application's cells, for any thread.

    Attributes:
        is_kept: Whether kernels report tables. Off by default: nothing is encoded then.
    """

    def __init__(self) -> None:
        self.is_kept = False
        self._lock = threading.Lock()
        self._tables: deque[CellTable] = deque(maxlen=_MOST_TABLES)

    @property
    def limit_chars(self) -> int:
        """Longest text of a table that a kernel reports, or 0 for no table."""
        return TABLE_CHARS if self.is_kept else 0

    def add(self, exec_id: str, text: object) -> None:
        """Keep the table that a kernel reports for a cell, and drop the oldest above the limit.

        Args:
            exec_id: Id of the cell.
            text: What the kernel reports; anything but a text of a bearable length is left out.
        """
        if self.is_kept and isinstance(text, str) and 0 < len(text) <= TABLE_CHARS:
            with self._lock:
                self._tables.append(CellTable(exec_id, text))
                while sum(len(table.text) for table in self._tables) > _MOST_CHARS:
                    self._tables.popleft()

    def take(self, exec_ids: Collection[str]) -> list[CellTable]:
        """Return, once, the tables of some cells, in the order of arrival."""
        with self._lock:
            found = [table for table in self._tables if table.exec_id in exec_ids]
            rest = [table for table in self._tables if table.exec_id not in exec_ids]
            self._tables = deque(rest, _MOST_TABLES)
        return found


class Snapshot(Protocol):
    """The state of a kernel at one moment, from which further kernels start. Close the state."""

    def fork(
        self,
        session_id: str,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
    ) -> Client:
        """Return a client whose kernel has the variables; see `Manager.get_session_client`.

        Raises:
            ForkRefused: If the snapshot is gone, or there is no room for another process.
            KernelStartFailed: If the forked kernel does not answer.
        """

    def close(self) -> None:
        """Discard the snapshot. Kernels that started from the snapshot live on."""


@runtime_checkable
class Client(Protocol):
    """One session's kernel. Protocols below have what only some kernels can do.

    Attributes:
        cwd: Working directory on this machine.
        state: State of the kernel, in a word or two.
    """

    cwd: Path
    state: str

    @property
    def has_state(self) -> bool:
        """True if the kernel runs and has all variables, inherited or restored."""

    def start(self) -> None:
        """Start the kernel in the background and return at once. Safe to call again."""

    def stop(self) -> None:
        """Stop the kernel and all processes of the kernel. Safe to call again."""

    def interrupt(self) -> None:
        """Interrupt the running cell, if any, from any thread.

        A cell that waits for the kernel to start does not begin: its result is ``interrupted``.
        """

    def operation(self) -> AbstractContextManager[None]:
        """Keep interrupts from now on, for the operations of a block.

        Those of other threads wait for its end. An interrupt that comes between two operations of
        the block ends the next one: a cell is not begun, the others raise `KernelInterrupted`.
        """

    def execute_code(
        self,
        exec_id: str,
        code: str,
        on_output: OutputHandler | None = None,
    ) -> ExecutionResult:
        """Run a cell to its end or its deadline. Kernel faults are results, not errors.

        Raises:
            KernelStartFailed: If the kernel cannot be started.
            KernelClosed: If the client was stopped.
        """

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load plugins in one request, and remove others, now and after each restart.

        One that is there as it is is not loaded again; one that has changed takes its place.

        Args:
            plugins: The plugins.
            removed: Names of those to remove.

        Returns:
            Why a plugin was left out, by its name.
        """

    def load_plugin(self, name: str, code: str, config: Mapping[str, Any] | None = None) -> None:
        """Put a plugin into the kernel's namespace, now and after each restart.

        Raises:
            PluginLoadFailed: If its code raises.
        """

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables that plugins read through their context."""

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files and pictures, which the kernel reads.

        Code can forge it, as everything that its kernel sends.

        Args:
            files: Name, size and the beginning of each; see the operation of the kernel.

        Returns:
            Tables of each file, a smaller picture, or the problem, by its name.

        Raises:
            KernelError: If the kernel cannot be started or was stopped.
        """

    def upload_file(self, filename: str, content: bytes) -> str:
        """Write a file into the working directory, and return the file's name there.

        Raises:
            ValueError: If the name leaves the directory.
        """


class OriginalUses:
    """Operations of a `Client` that programs of the original use.

    A plain class, as a bound object has to be whose class changes in a forked child.
    """

    def load_plugin(
        self: Client, name: str, code: str, config: Mapping[str, Any] | None = None
    ) -> None:
        """Put a plugin into the kernel's namespace (see `Client`)."""
        problem = self.load_plugins([PluginCode(name, code, config or {})]).get(name)
        if problem:
            raise PluginLoadFailed(f"Plugin {name!r}: {problem}")

    def upload_file(self: Client, filename: str, content: bytes) -> str:
        """Write a file into the working directory (see `Client`)."""
        if not is_plain_name(filename):
            raise ValueError(f"{filename!r} is not the name of a file without folders")
        with Folder.at(self.cwd) as folder, folder.replacing(filename) as target:
            target.write(content)
        return filename


# `isinstance` reads the properties of a protocol on Python 3.11: what costs time is a method.
@runtime_checkable
class Forkable(Client, Protocol):
    """A kernel whose variables can be copied and stored."""

    def footprint(self) -> Footprint:
        """Return the memory of the kernel, or zeros when the kernel does not run."""

    def snapshot(self) -> Snapshot:
        """Keep the state of this moment. A caller waits while a cell runs.

        Raises:
            ForkRefused: If something that runs or is open does not survive a fork; names it.
        """

    def state_writer(self, skip: Mapping[str, str], limit_bytes: int) -> StateWriter:
        """Return the state of this moment, to be stored. A caller waits while a cell runs.

        Args:
            skip: Variables that are not stored, each with the reason.
            limit_bytes: Size of the largest variable that is stored.

        Raises:
            ForkRefused: If there is no kernel, or no room for another process.
        """

    def restore_from(self, origin: Origin) -> None:
        """Start from a stored state before the first cell, now and after each restart.

        Args:
            origin: Returns the state, when it is needed.
        """


def forkable(client: Client) -> Forkable:
    """Return a kernel as one that can be forked.

    Raises:
        ForkRefused: If kernels of its kind cannot.
    """
    if not isinstance(client, Forkable):
        raise ForkRefused("it runs on another machine, or in a notebook")
    return client


@runtime_checkable
class Inspectable(Client, Protocol):
    """A kernel that shows its variables."""

    def view(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a view of the variables, which are restored first where needed. No cell runs.

        Code can forge it, as everything that its kernel sends.

        Args:
            wanted: ``view`` and its arguments; see the operation of the kernel.

        Returns:
            The view, or a ``problem``; nothing where the kernel ended.

        Raises:
            KernelError: If the kernel cannot be started, was stopped or interrupted, or cannot
                show its variables.
        """


def inspectable(client: Client) -> Inspectable:
    """Return a kernel as one that shows its variables.

    Raises:
        KernelError: If kernels of its kind do not.
    """
    if not isinstance(client, Inspectable):
        raise KernelError("The kernel runs on another machine, which shows no variables.")
    return client


@runtime_checkable
class Measured(Client, Protocol):
    """A kernel whose resources this process bounds."""

    def bounds(self) -> tuple[ResourceBound, ...]:
        """Return the bounds on the session's resources, with the mechanisms."""

    def left_behind(self) -> str:
        """Return number and names of running processes that cells started, or ""."""


@runtime_checkable
class Shared(Client, Protocol):
    """A kernel in which others run cells as well, as Jupyter clients do."""

    @property
    def last_foreign_request(self) -> float:
        """Time of the last request of another client that is known.

        In seconds of the monotonic clock: now while it runs a cell, minus infinity for none.
        """

    def foreign_cells(self) -> list[str]:
        """Return, once, the code of cells that others ran, oldest first.

        The first 100 since the last call are known. They share the namespace of the session's own
        cells; one that runs when those of the session are asked for runs to its end first.
        """


@runtime_checkable
class TakesFunctions(Client, Protocol):
    """A kernel that can call functions of this process."""

    def offer(self, functions: HostFunctions) -> None:
        """Let cells call functions of this process, now and after each restart.

        Functions that were offered before are replaced.

        Raises:
            OSError: If the socket for it cannot be made.
        """


@runtime_checkable
class Manager(Protocol):
    """Owner of all kernels of an application.

    Attributes:
        tables: Tables that cells ended with, for a program that wants them.
    """

    tables: CellTables

    def initialize(self) -> None:
        """Prepare the resources that all kernels share."""

    def clean_up(self) -> None:
        """Stop every kernel."""

    def get_session_client(
        self,
        session_id: str,
        env_id: str | None = None,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        *,
        devices: tuple[Path, ...] = (),
    ) -> Client:
        """Return the client of a session, made on first call."""

    @property
    def start_problem(self) -> str:
        """Reason that kernels start cold although a warm process is enabled, or ""."""
        return ""

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """The bounds on each session's resources, and the mechanisms, as far as they are known."""
        return ()

    def get_kernel_mode(self) -> str:
        """Return how kernels run, e.g. ``local``."""
