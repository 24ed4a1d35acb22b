"""The ipykernel of a kernel process: prepare for a request, run the cell, report.

A request carries ``user_expressions = {"taskweaver": <JSON>}`` with an ``op``:

- ``cell``: ``exec_id``; ``table_chars``, length of the table that is wanted, 0 for none; the code
  of the request runs. Report of `report.make_report`, and ``table`` of `report.table_text`.
- ``session``: ``ids`` of environment and session; ``variables`` plugins may read; ``host``, socket
  where functions of the application answer, empty for none.
- ``load``: ``plugins``, each with ``name``, ``source``, ``config`` and ``file``; names ``removed``;
  ``limit_s``, seconds for each. Report: ``problems`` by name.
- ``test``: ``name`` of a loaded plugin; ``limit_s``. Report: ``results``, name and failure each.
- ``snapshot``: the fields of a `ForkRequest`; the kernel forks a template. Report: ``refused``, the
  reasons why it does not, or nothing.
- ``state``: the fields of a `ForkRequest`, names to ``skip`` with reasons, ``limit_bytes`` of a
  variable; the kernel forks a child that writes the variables. Report: ``refused``, or nothing.
- ``overview``: ``files``, each with ``name``, ``bytes`` and the ``content`` of its beginning in
  base64, of a picture also ``within``, most pixels of a side and most bytes. Report: ``files``, the
  `overview` of each by name.
- ``view``: a `view` of variables, its name in ``view``, and its arguments.
- ``restore``: ``socket``, where the host serves a stored state; ``missing``, names with reasons.
  Report: ``problems``, name and reason each.

The report comes back in the reply's ``user_expressions`` under the same name, whether or not the
code failed (IPython itself evaluates expressions only after success). A request without this name
is another Jupyter client's: its results go there, as those of any kernel do.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from ipykernel import ipkernel  # noqa: TID253 - this module runs inside the kernel
from ipykernel.ipkernel import IPythonKernel  # noqa: TID253 - this module runs inside the kernel

from taskweaver.ces.inkernel import template
from taskweaver.ces.inkernel.cell.current import ARTIFACTS, FOREIGN
from taskweaver.ces.inkernel.cell.display import set_formats
from taskweaver.ces.inkernel.cell.output import BUDGET, LimitedStream
from taskweaver.ces.inkernel.cell.report import make_report, take_figures, to_json
from taskweaver.ces.inkernel.cell.shell import CellShell, add_script_magics
from taskweaver.ces.inkernel.forking.safety import ForkSafety
from taskweaver.ces.inkernel.namespace import (
    MadeBy,
    add_functions,
    add_usual_names,
    configure_libraries,
    kernel_names,
)
from taskweaver.ces.inkernel.plugins import LoadedPlugins, Payload, PluginSession
from taskweaver.ces.inkernel.process import BASE, ForkRequest, announce
from taskweaver.ces.inkernel.timelimit import TooSlow
from taskweaver.utils.system.platform import HAS_LIVE_FORKS
from taskweaver.utils.text import shorten

Reply = dict[str, Any]
_RAISED = (Exception, KeyboardInterrupt, SystemExit, asyncio.CancelledError, TooSlow)


class _SysWithoutModules:
    modules: Mapping[str, Any] = MappingProxyType({})

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


@contextmanager
def _modules_unlisted() -> Iterator[None]:
    """Keep ipykernel from listing the files of all modules for the debugger.

    To look at each module takes a tenth of a start, and copies 4 MiB that are shared with the
    template.
    """
    names: Any = ipkernel
    names.sys = _SysWithoutModules()
    try:
        yield
    finally:
        names.sys = sys


class CellKernel(IPythonKernel):
    """An ipykernel that reports on each cell."""

    shell: Any
    shell_class = CellShell

    def __init__(self, **kwargs: Any) -> None:
        with _modules_unlisted():
            super().__init__(**kwargs)
        self._plugin_session = PluginSession()
        self._plugins = LoadedPlugins(self.shell.user_ns, self._plugin_session)
        self._cwd = os.getcwd()  # noqa: PTH109 - goes to os.chdir
        self._value: Any = None
        self._streams: tuple[Any, Any] = (sys.stdout, sys.stderr)
        self._templates: list[int] = []
        self._is_heir = False
        self._safety: ForkSafety | None = None
        self._has_begun = False
        self._numbers: Any = None
        self._made = MadeBy()
        self._operations: dict[str, Callable[[Payload], Payload]] = {
            "session": self._plugin_session.update,
            "load": self._plugins.load,
            "test": self._plugins.test,
            "snapshot": self._snapshot,
            "state": self._write_state,
            "restore": self._restore,
            "overview": _overview,
            "view": self._view,
        }
        # A cell that calls them would end the kernel after a successful reply.
        for name in ("exit", "quit"):
            self.shell.user_ns.pop(name, None)
        add_usual_names(self.shell.user_ns)
        add_functions(self.shell.user_ns, self.shell.user_ns_hidden)
        add_script_magics(self.shell)
        set_formats(self.shell)
        self.shell.events.register("post_run_cell", self._keep_value)

    async def do_execute(self, *args: Any, **request: Any) -> Reply:
        """Answer a request. The answer about a raised error holds the error's text.

        The module's docstring has the form of this package's requests.
        """
        try:
            return await self._answer(*args, **request)
        except _RAISED as error:
            return self._failed(error)

    async def _answer(self, *args: Any, user_expressions: Any = None, **request: Any) -> Reply:
        if not self._has_begun:
            self._begin()
        if "taskweaver" not in (user_expressions or {}):
            self._prepare("")
            with FOREIGN.running(self.shell):
                shown = await self._run(*args, user_expressions=user_expressions, **request)
                take_figures()
                self._warn_moved()
                self._end_output()
            BUDGET.admit()  # what comes after its end goes to the other client, too
            self._made.note("", self.shell.user_ns)
            self._value = None
            return shown
        payload: Payload = json.loads(user_expressions["taskweaver"])
        self._templates = [pid for pid in self._templates if _is_running(pid)]
        operation = self._operations.get(payload.get("op", ""))
        if operation is not None:
            count = len(ARTIFACTS.items)
            try:
                with BUDGET.silence():  # tests of plugins print and make files for nobody
                    report = operation(payload)
            finally:
                del ARTIFACTS.items[count:]
            reply: Reply = {"status": "ok", "execution_count": self.execution_count}
        else:
            self._prepare(str(payload.get("exec_id", "")))
            reply = await self._run(*args, user_expressions={}, **request)
            report = self._report(int(payload.get("table_chars", 0)))
            self._made.note(str(payload.get("exec_id", "")), self.shell.user_ns)
            self._end_output()
        reply["user_expressions"] = {"taskweaver": to_json(report)}
        return reply

    async def _run(self, *args: Any, **request: Any) -> Reply:
        """Run a cell, and return the reply in characters that can be sent."""
        run = super().do_execute
        try:
            reply: Reply = await run(*args, **request)
        except _RAISED as error:  # the text of the cell's own exception, for example
            return self._failed(error)
        if reply["status"] == "error":
            about = shorten(reply["evalue"], 1000).encode("utf-8", "replace")
            self.shell.take_traceback()
            return reply | {"evalue": about.decode()}
        self.shell.print_traceback()
        return reply

    def _failed(self, error: BaseException) -> Reply:
        """Return the reply about a request that has raised, or whose reply has."""
        trace = self.shell.take_traceback()
        if not trace:
            self.shell.showtraceback((type(error), error, error.__traceback__))
            trace = self.shell.take_traceback()
        about = {"ename": "Error", "evalue": "", "traceback": trace}
        return {"status": "error", "execution_count": self.execution_count, **about}

    @property
    def kernel_info(self) -> Reply:
        """Facts for clients: one cell runs at a time, so that the kernel can be forked."""
        info: Reply = super().kernel_info
        features = [name for name in info["supported_features"] if name != "kernel subshells"]
        return info | {"supported_features": features}

    async def create_subshell_request(self, socket: Any, ident: Any, parent: Any) -> None:
        """Refuse a subshell."""
        error = {"ename": "NotSupported", "evalue": "no subshells here", "traceback": []}
        session: Any = self.session
        session.send(socket, "create_subshell_reply", {"status": "error"} | error, parent, ident)

    def _begin(self) -> None:
        """Record the kernel's own names, threads and files before the first request."""
        self._has_begun = True
        # Has any signal wake the loop, which an interrupt of a cell that awaits needs.
        asyncio.get_running_loop().add_signal_handler(signal.SIGURG, int)
        if HAS_LIVE_FORKS:
            self._safety = ForkSafety(self.shell.user_ns)
        if not self._is_heir:
            BASE.note()
        if self._numbers is not None:
            random.setstate(self._numbers)

    @property
    def _hidden_names(self) -> frozenset[str]:
        return kernel_names(self.shell) | self._plugins.names

    def _keep_value(self, result: Any) -> None:
        self._value = getattr(result, "result", None)

    def _prepare(self, exec_id: str) -> None:
        """Restore the streams and the folder that a cell may have broken, and reset all records."""
        sys.stdout, sys.stderr = self._streams
        for stream in self._streams:
            stream.set_parent(self.get_parent())
        # A cell may have removed it; without one even an error could not be reported.
        os.makedirs(self._cwd, exist_ok=True)  # noqa: PTH103 - a text is what it is kept as
        os.chdir(self._cwd)
        BUDGET.renew()
        configure_libraries()
        self._plugin_session.begin(exec_id)
        self._value = None

    def enter_directory(self, folder: str) -> None:
        """Make a folder for the rest of this cell and all later cells."""
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - a text is what it is kept as
        sys.path[:] = [folder if entry == self._cwd else entry for entry in sys.path]
        self._cwd = folder
        os.chdir(folder)

    def _report(self, table_chars: int) -> Payload:
        """Make the report with interrupts held back: the cell is over."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            seen = self._hidden_names, self._plugin_session, table_chars
            report = make_report(self.shell, self._value, *seen)
            self.shell.print_traceback()
            self._warn_moved()
            return report
        except Exception as error:  # noqa: BLE001 - a cell can break what reports it; it is told
            return {"output": f"<no report of this cell: {type(error).__name__}: {error}>"}
        finally:
            signal.signal(signal.SIGINT, before)
            self._value = None

    def _warn_moved(self) -> None:
        """Warn that a directory that the cell changed to is left at the end."""
        with suppress(OSError):
            if not os.path.samefile(os.curdir, self._cwd):  # noqa: PTH121
                here = os.getcwd()  # noqa: PTH109
                self._streams[1].write(
                    f"The directory {here} is left with this cell: the next one begins in"
                    f" {self._cwd}, where the files of the session are. Write whole paths, or"
                    " change the directory in each cell that needs it.\n"
                )

    def _end_output(self) -> None:
        """Send the output of a cell, with the output of programs, and all held output."""
        for send in (*(stream.flush for stream in self._streams), BUDGET.flush) * 2:
            send()

    def _snapshot(self, payload: Payload) -> Payload:
        reasons = self._safety.reasons() if self._safety else []
        if reasons:
            return {"refused": reasons}
        # Forked from the event loop itself: no frame of a request may be left half done there.
        asyncio.get_running_loop().call_soon(self._fork_template, ForkRequest(**payload["request"]))
        return {}

    def _write_state(self, payload: Payload) -> Payload:
        # Not needed to start a kernel; where there is a template, that has imported it.
        from taskweaver.ces.inkernel.state.save import Subject
        from taskweaver.ces.inkernel.state.transport import fork_writer

        limits = payload["skip"], payload["limit_bytes"]
        subject = Subject(self.shell.user_ns, self._hidden_names, self._made.cells, *limits)
        try:
            self._templates.append(fork_writer(ForkRequest(**payload["request"]), subject))
        except OSError as error:
            return {"refused": [str(error.strerror)]}
        return {}

    def _restore(self, payload: Payload) -> Payload:
        from taskweaver.ces.inkernel.state.transport import restore

        try:
            problems = restore(payload["socket"], self.shell.user_ns, payload["missing"])
        except Exception as error:  # noqa: BLE001 - a manifest may hold anything; it is reported
            reason = f"{type(error).__name__}: {error}"[:500]
            return {"problems": [["", f"the stored variables cannot be read: {reason}"]]}
        self._made.note("", self.shell.user_ns)
        return {"problems": [[problem.name, problem.reason] for problem in problems]}

    def _view(self, payload: Payload) -> Payload:
        # Not needed to start a kernel.
        from taskweaver.ces.inkernel.view import view

        return view(payload, self.shell.user_ns, self._hidden_names)

    def _fork_template(self, request: ForkRequest) -> None:
        try:
            self._templates.append(template.snapshot(request))
        except OSError as error:
            announce(request, str(error.strerror)).close()

    def inherit(self, parent: CellKernel, numbers: Any) -> None:
        """Take over the session's state from the kernel this one was forked from.

        `numbers` is the state of the random generator; a kernel that starts draws from it.
        """
        self._numbers = numbers
        self._plugin_session = parent._plugin_session
        self._plugins = parent._plugins
        self._made = parent._made
        self._is_heir = True
        names = ("session", "load", "test")
        self._operations |= {name: parent._operations[name] for name in names}
        before: Any = parent.shell
        self.shell.execution_count = before.execution_count
        self.shell.user_ns_hidden = before.user_ns_hidden  # its own would hide inherited variables
        for old, new in zip(parent._streams, self._streams, strict=True):
            if isinstance(old, LimitedStream):
                old.heir = new


def _overview(payload: Payload) -> Payload:
    # Not needed to start a kernel.
    from taskweaver.ces.inkernel.overview import overviews

    return overviews(payload)


def _is_running(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False  # a cell has waited for all children
