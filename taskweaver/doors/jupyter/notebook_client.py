"""The kernel of a notebook as the kernel of a session. See `ces.common`.

Cells of the session run in the notebook's namespace, inside of one of the notebook's own cells.
"""

from __future__ import annotations

import io
import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taskweaver.ces.common import (
    CellTables,
    ExecutionResult,
    Manager,
    OriginalUses,
    OutputHandler,
    PluginCode,
)
from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.inkernel.cell.current import ARTIFACTS
from taskweaver.ces.inkernel.cell.display import save_rich, text_of
from taskweaver.ces.inkernel.cell.report import make_report, to_json
from taskweaver.ces.inkernel.namespace import (
    PANDAS_OPTIONS,
    add_functions,
    add_usual_names,
    kernel_names,
    leave_libraries,
)
from taskweaver.ces.inkernel.plugins import LoadedPlugins, PluginSession
from taskweaver.ces.kernel.channel import Exchange
from taskweaver.ces.kernel.outcome import outcome_of, trace
from taskweaver.ces.limits import KernelLimits
from taskweaver.utils.markup.characters import without_steering

_OUTPUT_CHARS = 1 << 20
_FIGURE = "<Figure size "
_OWN_MAGICS = ("%%ask", "%ask", "%load_ext taskweaver", "%reload_ext taskweaver")


class NotebookCells:
    """Runs cells in a notebook's shell, with output, displays and figures kept for their report.

    Attributes:
        shell: The notebook's shell.
        plugins: The plugins in the notebook's namespace.
        session: What plugins know of the session.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.session = PluginSession()
        self.plugins = LoadedPlugins(shell.user_ns, self.session)
        leave_libraries()
        add_usual_names(shell.user_ns)
        add_functions(shell.user_ns, shell.user_ns_hidden)

    @property
    def hidden_names(self) -> frozenset[str]:
        """Names in the namespace that are not the user's."""
        return kernel_names(self.shell) | self.plugins.names

    def run(self, exec_id: str, code: str, cwd: Path, table_chars: int) -> Exchange:
        """Run a cell in a folder, and report like a kernel.

        Raises:
            KeyboardInterrupt: If it is interrupted.
        """
        shell = self.shell
        ARTIFACTS.folder = cwd
        self.session.begin(exec_id)
        with chdir(cwd), _usual_options(), _captured(shell) as captured:
            outcome = shell.run_cell(code, store_history=False)
            error = outcome.error_before_exec or outcome.error_in_exec
            if isinstance(error, KeyboardInterrupt):
                raise error
            for shown in (item["data"] for item in captured.publisher.outputs):
                if str(shown.get("text/plain")).startswith(_FIGURE):
                    if type(captured.value).__module__.startswith(("matplotlib.", "seaborn.")):
                        captured.value = None  # its figure is shown
                    if "savefig(" in code:
                        continue  # the cell has written it to a file of its own
                if not save_rich(shown):
                    sys.stdout.write(f"{text_of(shown)}\n")
            seen = self.hidden_names, self.session, table_chars
            report = make_report(shell, captured.value, *seen)
        trace = [without_steering("\n".join(captured.trace))] if error is not None else []
        reply = {
            "status": "ok" if error is None else "error",
            "traceback": trace,
            "user_expressions": {"taskweaver": to_json(report)},
        }
        printed, warned = captured.stdout.getvalue(), captured.stderr.getvalue()
        is_cut = len(printed) > _OUTPUT_CHARS or len(warned) > _OUTPUT_CHARS
        stdout, stderr = ([text[:_OUTPUT_CHARS]] if text else [] for text in (printed, warned))
        return Exchange(reply=reply, stdout=stdout, stderr=stderr, is_cut=is_cut)


class _Captured:
    """Output, displayed objects and value of a cell."""

    def __init__(self, publisher: Any) -> None:
        self.stdout, self.stderr = io.StringIO(), io.StringIO()
        self.value: Any = None
        self.trace: list[str] = []
        self.publisher = publisher

    def keep_value(self, value: Any) -> None:
        """Take the value of the last expression, in place of the display hook."""
        self.value = value

    def keep_trace(self, _kind: Any, _error: Any, lines: list[str]) -> None:
        """Take a traceback, which the notebook would show below the own cell."""
        self.trace = list(lines)


@contextmanager
def _captured(shell: Any) -> Iterator[_Captured]:
    from IPython.core.displaypub import CapturingDisplayPublisher

    publisher: Any = CapturingDisplayPublisher  # its module is untyped
    captured = _Captured(publisher())
    names = {
        "display_pub": captured.publisher,
        "_showtraceback": captured.keep_trace,
        "ast_node_interactivity": "last_expr_or_assign",
    }
    before = {name: getattr(shell, name) for name in names}
    hook = sys.displayhook
    for name, value in names.items():
        setattr(shell, name, value)
    sys.displayhook = captured.keep_value
    try:
        with redirect_stdout(captured.stdout), redirect_stderr(captured.stderr):
            yield captured
    finally:
        sys.displayhook = hook
        for name, value in before.items():
            setattr(shell, name, value)


@contextmanager
def _usual_options() -> Iterator[None]:
    """Show tables in the width that roles expect. The notebook's own options come back."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        yield
        return
    pairs = [part for pair in PANDAS_OPTIONS.items() for part in pair]
    with suppress(AttributeError), pandas.option_context(*pairs):
        yield


_LOAD_S = 30.0


class NotebookClient(OriginalUses):
    """The kernel of a notebook, for the notebook's session."""

    has_state = True
    state = "ready"
    last_foreign_request = -math.inf  # unknown

    def __init__(self, cells: NotebookCells, cwd: Path, tables: CellTables) -> None:
        self._cells = cells
        self.cwd = cwd
        self._tables = tables
        self._thread = threading.get_ident()
        self._lock = threading.RLock()
        self._seen = 0

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell in the notebook's namespace. See `Client`.

        Raises:
            KernelStartFailed: In another thread than the notebook's.
            KeyboardInterrupt: If the notebook is interrupted.
        """
        if threading.get_ident() != self._thread:
            raise KernelStartFailed("A notebook runs one cell at a time, in its own thread.")
        began = time.monotonic()
        done = self._cells.run(exec_id, code, self.cwd, self._tables.limit_chars)
        limit_bytes = KernelLimits.default().artifact_limit_bytes
        result = outcome_of(exec_id, code, done, self.cwd, limit_bytes, self._tables)
        if on_output is not None:
            for text in done.stdout:
                on_output("stdout", text)
        if done.reply["status"] != "ok":
            result.is_success, result.status, result.error = False, "error", trace(done.reply)
        result.duration_s = time.monotonic() - began
        return result

    def foreign_cells(self) -> list[str]:
        """Return, once, the code of the notebook's own cells."""
        cells: list[str] = list(self._cells.shell.user_ns.get("In", []))
        new, self._seen = cells[max(self._seen, 1) :], len(cells)
        return [code for code in new if code.strip() and not code.lstrip().startswith(_OWN_MAGICS)]

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load and remove plugins. See `Client`."""
        items = [asdict(plugin) for plugin in plugins]
        names = [*removed]
        if not items and not names:
            return {}
        request = {"plugins": items, "removed": names, "limit_s": _LOAD_S}
        return dict(self._cells.plugins.load(request)["problems"])

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files. See `Client`."""
        from taskweaver.ces.inkernel.overview import overviews

        return dict(overviews({"files": list(files)})["files"])

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables that plugins read."""
        self._cells.session.session_vars.update(session_var_dict)

    def start(self) -> None:
        """Do nothing: the kernel runs."""

    def stop(self) -> None:
        """Do nothing: the kernel is the notebook's."""

    def interrupt(self) -> None:
        """Do nothing: interrupting the notebook interrupts the cell."""

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Keep all further threads out of a block."""
        with self._lock:
            yield


class NotebookManager(Manager):
    """Owner of the one kernel that sessions in a notebook have."""

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
        """Return the client of the session. A notebook has one, with one branch.

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

    def get_kernel_mode(self) -> str:
        """Return how kernels run."""
        return "local"
