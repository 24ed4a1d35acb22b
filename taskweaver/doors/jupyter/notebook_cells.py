"""Cells of a session that run in the namespace of a notebook, inside of one of its own cells."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.cell.current import ARTIFACTS
from taskweaver.ces.inkernel.cell.display import save_rich, text_of
from taskweaver.ces.inkernel.cell.report import make_report, table_text, to_json
from taskweaver.ces.inkernel.namespace import (
    PANDAS_OPTIONS,
    add_functions,
    add_usual_names,
    kernel_names,
    leave_libraries,
    table_reads,
)
from taskweaver.ces.inkernel.plugins import LoadedPlugins, PluginSession
from taskweaver.ces.kernel.channel import KernelReply
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
        self._seen = 0
        self.session = PluginSession()
        self.plugins = LoadedPlugins(shell.user_ns, self.session)
        leave_libraries()
        add_usual_names(shell.user_ns)
        add_functions(shell.user_ns, shell.user_ns_hidden)

    @property
    def hidden_names(self) -> frozenset[str]:
        """Names in the namespace that are not the user's."""
        return kernel_names(self.shell) | self.plugins.names

    def own_cells(self) -> list[str]:
        """Return, once, the code of the notebook's own cells."""
        cells: list[str] = list(self.shell.user_ns.get("In", []))
        new, self._seen = cells[max(self._seen, 1) :], len(cells)
        return [code for code in new if code.strip() and not code.lstrip().startswith(_OWN_MAGICS)]

    def run(self, exec_id: str, code: str, cwd: Path, table_chars: int) -> KernelReply:
        """Run a cell in a folder, and report on it as kernels do.

        Raises:
            KeyboardInterrupt: If it is interrupted.
        """
        shell = self.shell
        ARTIFACTS.folder = cwd
        ARTIFACTS.begin(exec_id)
        self.session.lines = []
        self.session.calls.begin()
        table_reads(begin=True)
        with _inside(cwd), _usual_options(), _captured(shell) as captured:
            outcome = shell.run_cell(code, store_history=False)
            error = outcome.error_before_exec or outcome.error_in_exec
            if isinstance(error, KeyboardInterrupt):
                raise error
            for shown in captured.shown():
                if str(shown.get("text/plain")).startswith(_FIGURE):
                    if type(captured.value).__module__.startswith(("matplotlib.", "seaborn.")):
                        captured.value = None  # its figure is shown
                    if "savefig(" in code:
                        continue  # the cell has written it to a file of its own
                if not save_rich(shown):
                    sys.stdout.write(f"{text_of(shown)}\n")
            report = make_report(shell, captured.value, self.hidden_names, self.session.lines)
            report |= {"calls": self.session.calls.rows, "tables": table_reads()}
            report["table"] = table_text(captured.value, table_chars) if table_chars else ""
        trace = [without_steering("\n".join(captured.trace))] if error is not None else []
        reply = {
            "status": "ok" if error is None else "error",
            "traceback": trace,
            "user_expressions": {"taskweaver": to_json(report)},
        }
        printed, warned = captured.stdout.getvalue(), captured.stderr.getvalue()
        is_cut = len(printed) > _OUTPUT_CHARS or len(warned) > _OUTPUT_CHARS
        stdout, stderr = ([text[:_OUTPUT_CHARS]] if text else [] for text in (printed, warned))
        return KernelReply("reply", reply, stdout, stderr, is_cut)


class _Captured:
    """Output, displayed objects and value of a cell."""

    def __init__(self, publisher: Any) -> None:
        self.stdout, self.stderr = io.StringIO(), io.StringIO()
        self.value: Any = None
        self.trace: list[str] = []
        self._publisher = publisher

    def shown(self) -> Iterator[dict[str, Any]]:
        """Yield the forms of each displayed object."""
        return (item["data"] for item in self._publisher.outputs)

    def keep_value(self, value: Any) -> None:
        """Take the value of the last expression, in place of the display hook."""
        self.value = value

    def keep_trace(self, _kind: Any, _error: Any, lines: list[str]) -> None:
        """Take a traceback, which the notebook would show as its own cell's."""
        self.trace = list(lines)


@contextmanager
def _captured(shell: Any) -> Iterator[_Captured]:
    from IPython.core.displaypub import CapturingDisplayPublisher

    publisher: Any = CapturingDisplayPublisher  # its module is untyped
    captured = _Captured(publisher())
    names = {
        "display_pub": captured._publisher,  # noqa: SLF001 - of this module
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
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _usual_options() -> Iterator[None]:
    """Show tables in the width that roles expect; the notebook's own options come back."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        yield
        return
    pairs = [part for pair in PANDAS_OPTIONS.items() for part in pair]
    with suppress(AttributeError), pandas.option_context(*pairs):
        yield
