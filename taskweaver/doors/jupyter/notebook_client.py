"""The kernel of a notebook as the kernel of a session in it; see `ces.common`."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.cell_tables import CellTables
from taskweaver.ces.claims import rows
from taskweaver.ces.common import (
    ExecutionResult,
    OutputHandler,
    PluginCode,
    PluginTestResult,
    Snapshot,
)
from taskweaver.ces.errors import ForkRefused, KernelStartFailed, PluginLoadFailed
from taskweaver.ces.hostcalls import HostFunctions
from taskweaver.ces.kernel.outcome import accept, fields, report_of, trace
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.footprint import Footprint
from taskweaver.ces.state_transfer import Origin, StateWriter
from taskweaver.doors.jupyter.notebook_cells import NotebookCells
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name

_NO_FORK = "it is the kernel of a notebook; notebooks fork as 'Jupyter' in the documentation shows"
_LOAD_S = 30.0


class NotebookClient:
    """The kernel of a notebook, for the session in it."""

    is_forked = False
    has_state = True
    state = "ready"
    footprint = Footprint()
    bounds: tuple[ResourceBound, ...] = ()

    def __init__(self, cells: NotebookCells, cwd: Path, tables: CellTables) -> None:
        self._cells = cells
        self._cwd = cwd
        self._tables = tables
        self._thread = threading.get_ident()
        self._lock = threading.RLock()

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell in the notebook's namespace; see `Client`.

        Raises:
            KernelStartFailed: In another thread than the notebook's.
            KeyboardInterrupt: If the notebook is interrupted.
        """
        if threading.get_ident() != self._thread:
            raise KernelStartFailed("A notebook runs one cell at a time, in its own thread.")
        began = time.monotonic()
        done = self._cells.run(exec_id, code, self._cwd, self._tables.limit_chars)
        report = report_of(fields(done.reply))
        self._tables.add(exec_id, report.table)
        limit_bytes = KernelLimits.default().artifact_limit_bytes
        artifacts, refused = accept(report.artifacts, self._cwd, limit_bytes)
        is_success = done.reply["status"] == "ok"
        if on_output is not None:
            for text in done.stdout:
                on_output("stdout", text)
        return ExecutionResult(
            exec_id,
            code,
            is_success=is_success,
            error=None if is_success else trace(done.reply),
            output=report.output,
            stdout=done.stdout,
            stderr=done.stderr,
            log=[*report.log, *(("warning", "artifacts", line) for line in refused)],
            artifact=artifacts,
            variables=report.variables,
            status="ok" if is_success else "error",
            is_truncated=report.is_truncated or done.is_cut,
            duration_s=time.monotonic() - began,
            calls=report.calls,
            tables=report.tables,
        )

    def foreign_cells(self) -> list[str]:
        """Return, once, the code of the notebook's own cells."""
        return self._cells.own_cells()

    def load_plugin(self, name: str, code: str, config: Mapping[str, Any] | None = None) -> None:
        """Put a plugin into the notebook's namespace; see `Client`."""
        problem = self.load_plugins([PluginCode(name, code, config or {})]).get(name)
        if problem:
            raise PluginLoadFailed(f"Plugin {name!r}: {problem}")

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load plugins, and remove others; see `Client`."""
        items = [asdict(plugin) for plugin in plugins]
        names = [*removed]
        if not items and not names:
            return {}
        request = {"plugins": items, "removed": names, "limit_s": _LOAD_S}
        return dict(self._cells.plugins.load(request)["problems"])

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files; see `Client`."""
        from taskweaver.ces.inkernel.overview import overviews

        return dict(overviews({"files": list(files)})["files"])

    def view(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a view of the notebook's variables; see `Client`."""
        from taskweaver.ces.inkernel.view import view

        return view(wanted, self._cells.shell.user_ns, self._cells.hidden_names)

    def test_plugin(self, name: str) -> list[PluginTestResult]:
        """Run the tests that came with a plugin."""
        found = self._cells.plugins.test({"name": name, "limit_s": _LOAD_S})
        return [PluginTestResult(a, b) for a, b in rows(found.get("results"), 2)]

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables that plugins read."""
        self._cells.session.session_vars.update(session_var_dict)

    def snapshot(self) -> Snapshot:
        """Refuse it."""
        raise ForkRefused(_NO_FORK)

    def state_writer(self, skip: Mapping[str, str], limit_bytes: int) -> StateWriter:  # noqa: ARG002
        """Refuse it: the variables are the notebook's."""
        raise ForkRefused(_NO_FORK)

    def start(self) -> None:
        """Do nothing: it runs."""

    def stop(self) -> None:
        """Do nothing: it is the notebook's."""

    def interrupt(self) -> None:
        """Do nothing: interrupting the notebook interrupts its cell."""

    def restore_from(self, origin: Origin) -> None:
        """Do nothing: the variables are the notebook's."""

    def offer(self, functions: HostFunctions) -> None:
        """Do nothing: tools of MCP servers are not offered in notebooks."""

    @property
    def last_foreign_request(self) -> float:
        """None that is known."""
        return -math.inf

    def left_behind(self) -> str:
        """Return nothing: processes are the notebook's."""
        return ""

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Keep other threads out of a block."""
        with self._lock:
            yield

    def upload_file(self, filename: str, content: bytes) -> str:
        """Write a file into the session's working directory; see `Client`."""
        if not is_plain_name(filename):
            raise ValueError(f"{filename!r} is not the name of a file without folders")
        with Folder.at(self._cwd) as folder, folder.replacing(filename) as target:
            target.write(content)
        return filename


class NotebookManager:
    """Owner of the one kernel that sessions in a notebook have.

    Attributes:
        tables: Tables that cells ended with.
    """

    start_problem = ""
    bounds: tuple[ResourceBound, ...] = ()

    def __init__(self, shell: Any) -> None:
        self.tables = CellTables()
        self._cells = NotebookCells(shell)
        self._clients: dict[str, NotebookClient] = {}

    def initialize(self) -> None:
        """Do nothing: the kernel runs."""

    def clean_up(self) -> None:
        """Do nothing: the kernel is the notebook's."""

    def get_session_client(
        self,
        session_id: str,
        env_id: str | None = None,  # noqa: ARG002 - as the protocol has it
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        *,
        devices: tuple[Path, ...] = (),  # noqa: ARG002
    ) -> NotebookClient:
        """Return the client of the session; a notebook has one, with one branch.

        Raises:
            KernelStartFailed: For another branch, or if there can be no working directory.
        """
        found = self._clients.get(session_id)
        if found is not None:
            return found
        if self._clients:
            raise KernelStartFailed("A session in a notebook has one branch: the notebook's.")
        where = Path(cwd or Path(session_dir or ".") / "cwd").absolute()
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KernelStartFailed(f"{where} cannot be used: {error.strerror}.") from error
        made = self._clients[session_id] = NotebookClient(self._cells, where, self.tables)
        return made

    def fork_session_client(
        self,
        snapshot: Snapshot,  # noqa: ARG002 - as the protocol has it
        session_id: str,  # noqa: ARG002
        env_id: str | None = None,  # noqa: ARG002
        session_dir: Path | str | None = None,  # noqa: ARG002
        cwd: Path | str | None = None,  # noqa: ARG002
    ) -> NotebookClient:
        """Refuse it."""
        raise ForkRefused(_NO_FORK)

    def get_kernel_mode(self) -> str:
        """Return how kernels run."""
        return "local"
