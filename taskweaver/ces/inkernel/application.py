"""The Jupyter application of a kernel process: made in a new process, or in a forked one."""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import random
import sys
from pathlib import Path
from typing import Any

from ipykernel.kernelapp import IPKernelApp  # noqa: TID253 - this module runs inside the kernel
from traitlets.config import Config

from taskweaver.ces.inkernel.cell.current import ARTIFACTS
from taskweaver.ces.inkernel.cell.output import BUDGET
from taskweaver.ces.inkernel.cell.shell import CellShell
from taskweaver.ces.inkernel.kernel import CellKernel

_LOG = logging.getLogger("KernelApp")
_LOG.propagate = False
_LOG.setLevel(logging.WARNING)  # once, and not in each fork: it touches all logs


class KernelApp(IPKernelApp):
    """A kernel application whose start leaves out what no kernel here needs."""

    def parse_command_line(self, argv: Any = None) -> None:
        """Take no arguments: making a parser takes a tenth of the start."""

    def init_code(self) -> None:
        """Run what the user's profile of IPython asks for.

        IPython would also keep the names of all modules, for ``%reset --aggressive``, which removes
        the others. That touches each name, and so copies a megabyte of what a template and its
        kernels share.
        """
        shell: Any = self.shell
        self._run_startup_files()
        self._run_exec_lines()
        self._run_exec_files()
        if self.hide_initial_ns:
            shell.user_ns_hidden.update(shell.user_ns)
        self._run_cmd_line_code()
        self._run_module()
        sys.stdout.flush()
        sys.stderr.flush()


def make_app(
    connection_file: str, output_limit_bytes: int, parent: IPKernelApp | None = None
) -> IPKernelApp:
    """Return a kernel application that is ready to start.

    The variables of `parent`, from whose kernel this process was forked, are kept.
    """
    BUDGET.limit_bytes = output_limit_bytes
    BUDGET.renew()
    ARTIFACTS.folder = Path.cwd()
    if parent is not None:
        _retire(parent)
    app = KernelApp.instance(config=_config(connection_file), log=_log())
    if parent is not None:
        shell: Any = parent.shell
        app.user_ns = shell.user_ns
    numbers = random.getstate()
    app.initialize([])
    kernel: Any = app.kernel
    if parent is not None:
        kernel.inherit(parent.kernel, numbers)
    else:
        # Nothing that is there before the first cell becomes garbage: not to look through it
        # again saves a sixth of a second at the end, and memory that forks would copy.
        gc.freeze()
    return app


def _retire(app: IPKernelApp) -> None:
    """Make room for another application in a forked process, without closing anything."""
    iopub: Any = app.iopub_thread
    for closing in (app.close, app.cleanup_connection_file, iopub.stop):
        atexit.unregister(closing)
    for kind in (KernelApp, CellKernel, CellShell):
        kind.clear_instance()
    asyncio.set_event_loop(asyncio.new_event_loop())


def _log() -> logging.Logger:
    """Return a log of warnings, to the error output of the process.

    The one that an application makes by itself also makes records that it does not write.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("[%(name)s] %(levelname)s: %(message)s"))
    _LOG.handlers = [handler]
    return _LOG


def _config(connection_file: str) -> Config:
    return Config(
        {
            "IPKernelApp": {
                "connection_file": connection_file,
                "kernel_class": CellKernel,
                "outstream_class": "taskweaver.ces.inkernel.cell.output.LimitedStream",
                "quiet": True,
                "log_level": 30,
            },
            "InteractiveShell": {
                "ast_node_interactivity": "last_expr_or_assign",
                "colors": "nocolor",
                "xmode": "Plain",
                "cache_size": 0,
                "enable_tip": False,  # choosing one would change the state of `random`
            },
            "HistoryManager": {"enabled": False},
            "Completer": {"use_jedi": False},
            "IPythonKernel": {"_execute_sleep": 0.0},
        }
    )
