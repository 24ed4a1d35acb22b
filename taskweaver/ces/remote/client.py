"""A kernel on another machine, as a `Client`."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.claims import items, rows, text
from taskweaver.ces.common import (
    ExecutionResult,
    ForkedWriter,
    OutputHandler,
    PluginCode,
    PluginTestResult,
    Stream,
)
from taskweaver.ces.errors import (
    ForkRefused,
    KernelClosed,
    KernelError,
    KernelInterrupted,
    PluginLoadFailed,
)
from taskweaver.ces.hostcalls import HostFunctions
from taskweaver.ces.kernel.interrupts import Interrupts
from taskweaver.ces.process.footprint import Footprint
from taskweaver.ces.remote.answers import result_from
from taskweaver.ces.remote.connection import KernelServer, ServerRefused, ServerUnreachable, quoted
from taskweaver.ces.remote.functions import OfferedFunctions
from taskweaver.ces.remote.mirror import FolderMirror
from taskweaver.ces.remote.reading import ExecutionReader
from taskweaver.ces.remote.snapshot import RemoteSnapshot
from taskweaver.ces.state.restorable import Origin
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name
from taskweaver.utils.system.forks import bind_to_process

_NOT_FOUND, _CONFLICT = 404, 409
_LOST = "The server of the kernels has lost the session: it was restarted, or ended the session."


class RemoteKernel:
    """A kernel on another machine. Its working directory is mirrored here.

    Attributes:
        state: ``not started``, ``ready``, ``busy`` or ``stopped``.
        is_forked: Whether it began with the variables of another.
        path: Path of its session at the server.
    """

    def __init__(
        self,
        server: KernelServer,
        session_id: str,
        cwd: Path,
        on_stop: Callable[[RemoteKernel], None],
        origin: RemoteSnapshot | None = None,
    ) -> None:
        """Prepare a kernel; its session is made when it is needed, or was forked off `origin`.

        `on_stop` is called once.
        """
        is_forked = origin is not None
        self.state = "ready" if is_forked else "not started"
        self.is_forked = is_forked
        self.session_id = session_id
        self.path = f"/sessions/{quoted(session_id)}"
        self._server = server
        self._cwd = cwd
        self._mirror = FolderMirror(server, self.path, cwd)
        self._on_stop: Callable[[RemoteKernel], None] | None = on_stop
        self._interrupts = Interrupts()
        self._one_cell = threading.RLock()
        self._plugins = dict(origin.plugins) if origin is not None else {}
        self._variables = dict(origin.variables) if origin is not None else {}
        self._functions = OfferedFunctions(server, self.path)
        bind_to_process(self)
        self._is_there = self._has_run = is_forked
        self._is_lost = False
        self._is_closed = False

    @property
    def has_state(self) -> bool:
        """True if it runs and has its variables."""
        return self._is_there and self._has_run

    @property
    def footprint(self) -> Footprint:
        """Zeros: its memory is not of this machine."""
        return Footprint()

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """None: the server sets them."""
        return ()

    def foreign_cells(self) -> list[str]:
        """Return none: the connections of a remote kernel stay on its machine."""
        return []

    @property
    def last_foreign_request(self) -> float:
        """None that is known."""
        return -math.inf

    def left_behind(self) -> str:
        """Return nothing: the server watches its processes."""
        return ""

    def start(self) -> None:
        """Do nothing: the server starts kernels fast, when the first operation comes."""

    def restore_from(self, origin: Origin) -> None:
        """Do nothing: no states of remote kernels are stored."""

    def stop(self) -> None:
        """End the kernel; the files that are mirrored here stay."""
        self._is_closed = True
        self.interrupt()
        with self._one_cell:
            if self._is_there:
                # A server that is away ends its sessions by itself when it stops.
                with suppress(KernelError):
                    self._server.ask("DELETE", self.path)
            self._is_there = False
            self.state = "stopped"
            on_stop, self._on_stop = self._on_stop, None
        if on_stop is not None:
            on_stop(self)

    def interrupt(self) -> None:
        """Interrupt the running cell, or the one that is to run."""
        self._interrupts.request()
        if self.state == "busy":
            with suppress(KernelError):  # the cell's own reader reports a server that is away
                self._server.ask("POST", f"{self.path}/interrupt")

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Exclude operations of other threads; an interrupt from now on ends those of the block."""
        with self._one_cell, self._interrupts.kept():
            yield

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell to its end; see `Client`. A server that goes away is a result, too."""
        with self.operation():
            try:
                self._ready()
                self._mirror.push()
                self._interrupts.check()
            except KernelInterrupted as error:
                return ExecutionResult(exec_id, code, error=str(error), status="interrupted")
            is_lost, self._is_lost = self._is_lost, False
            try:
                result = self._run(exec_id, code, on_output)
                self._mirror.pull()
            except (ServerUnreachable, ServerRefused) as error:
                result = self._failed(exec_id, code, error)
            result.is_state_lost |= is_lost
            return result

    def _run(self, exec_id: str, code: str, on_output: OutputHandler | None) -> ExecutionResult:
        ended: dict[str, Any] = {}

        def take(kind: str, data: Any) -> None:
            if kind == "output" and on_output is not None and isinstance(data, dict):
                stream: Stream = "stderr" if data.get("type") == "stderr" else "stdout"
                on_output(stream, text(data.get("text"), 1 << 20))
            elif kind == "call" and isinstance(data, dict):
                self._functions.carry_out(data)
            elif kind in {"result", "details"}:
                ended[kind] = data

        # An id of its own for each: a cell with the id of an earlier one runs anew.
        wire_id = f"cell-{secrets.token_hex(8)}"
        body = {"exec_id": wire_id, "code": code, "stream": True}
        self.state = "busy"
        try:
            self._server.ask("POST", f"{self.path}/execute", json=body)
            if self._interrupts.is_requested:  # it came before the server knew of the cell
                self._server.ask("POST", f"{self.path}/interrupt")
            ExecutionReader(self._server, f"{self.path}/execute/{wire_id}/stream", take).read()
        except BaseException as error:
            if not isinstance(error, KernelError):  # the caller was interrupted
                with suppress(KernelError):
                    self._server.ask("POST", f"{self.path}/interrupt")
            raise
        finally:
            self.state = "stopped" if self._is_closed else "ready"
        self._has_run = True
        return result_from(exec_id, code, ended.get("result"), ended.get("details"))

    def _failed(self, exec_id: str, code: str, error: KernelError) -> ExecutionResult:
        is_gone = isinstance(error, ServerRefused) and error.status == _NOT_FOUND
        if is_gone:
            self._is_there = self._has_run = False
        reason = f"{_LOST} All variables are gone." if is_gone else str(error)
        return ExecutionResult(
            exec_id,
            code,
            error=reason,
            status="died" if is_gone else "error",
            is_state_lost=is_gone,
        )

    def _ready(self) -> None:
        """Make the session, unless the server has it.

        Raises:
            KernelClosed: If this kernel was stopped.
            KernelError: If the server refuses, or does not answer.
        """
        if self._is_closed:
            raise KernelClosed("The kernel was stopped.", "Start another session.")
        if self._is_there:
            if self._is_known():
                return
            self._is_lost = self._has_run
        self._is_there = self._has_run = False
        self._mirror.forget()
        self._create()
        self._is_there = True
        self.state = "ready"
        if self._variables:
            self._set_variables()
        self._functions.announce()
        if self._plugins:
            self._send_plugins(list(self._plugins.values()), ())

    def _is_known(self) -> bool:
        try:
            self._server.ask("GET", self.path)
        except ServerRefused as error:
            if error.status != _NOT_FOUND:
                raise
            return False
        return True

    def _create(self) -> None:
        try:
            self._server.ask("POST", "/sessions", json={"session_id": self.session_id})
        except ServerRefused as error:
            if error.status != _CONFLICT:
                raise
            # It is of an earlier run of this program. Its variables do not fit the conversation.
            self._server.ask("POST", f"{self.path}/restart")

    def load_plugin(self, name: str, code: str, config: Mapping[str, Any] | None = None) -> None:
        """Put a plugin into the kernel's namespace; see `Client`."""
        problem = self.load_plugins([PluginCode(name, code, config or {})]).get(name)
        if problem:
            raise PluginLoadFailed(f"Plugin {name!r}: {problem}")

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load plugins, and remove others; see `Client`."""
        with self.operation():
            self._ready()
            kept, gone = self._plugins, list(removed)
            new = [plugin for plugin in plugins if kept.get(plugin.name) != plugin]
            gone = [name for name in gone if kept.pop(name, None) is not None]
            left_out = self._send_plugins(new, gone) if new or gone else {}
            kept.update({item.name: item for item in new if item.name not in left_out})
            return left_out

    def _send_plugins(self, plugins: list[PluginCode], removed: Iterable[str]) -> dict[str, str]:
        sent = [{"name": p.name, "code": p.source, "config": dict(p.config)} for p in plugins]
        body = {"plugins": sent, "removed": list(removed)}
        answer = self._server.ask("PUT", f"{self.path}/plugins", json=body)
        left_out = answer.get("left_out") if isinstance(answer, dict) else None
        found = left_out if isinstance(left_out, dict) else {}
        return {text(name): text(reason) for name, reason in found.items()}

    def test_plugin(self, name: str) -> list[PluginTestResult]:
        """Run the tests that came with a plugin."""
        with self.operation():
            self._ready()
            answer = self._server.ask("POST", f"{self.path}/plugins/{quoted(name)}/test")
            found = items(answer.get("results")) if isinstance(answer, dict) else []
            results = [[item.get("name"), item.get("failure")] for item in found]
            return [PluginTestResult(a, b) for a, b in rows(results, 2)]

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables that plugins read, now or when the session is made."""
        with self.operation():
            values = {name: str(value) for name, value in session_var_dict.items()}
            self._variables |= values
            if self._is_there:
                self._set_variables()

    def _set_variables(self) -> None:
        body = {"variables": self._variables}
        self._server.ask("POST", f"{self.path}/variables", json=body)

    def offer(self, functions: HostFunctions) -> None:
        """Let cells call functions of this process; see `Client`."""
        with self.operation():
            is_new = self._functions.functions is None
            self._functions.functions = functions
            if is_new and self._is_there:
                self._functions.announce()

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files; see `Client`."""
        with self.operation():
            self._ready()
            body = {"files": [dict(item) for item in files]}
            answer = self._server.ask("POST", f"{self.path}/overview", json=body)
            found = answer.get("files") if isinstance(answer, dict) else None
            return found if isinstance(found, dict) else {}

    def view(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Refuse: variables of remote kernels are not shown."""
        del wanted
        raise KernelError("The kernel runs on another machine, which shows no variables.")

    def snapshot(self) -> RemoteSnapshot:
        """Keep the state of this moment at the server; see `Client`."""
        with self.operation():
            if not self._is_there:
                raise ForkRefused(["it is not running"])
            answer = self._server.ask("POST", f"{self.path}/snapshots")
            found = answer if isinstance(answer, dict) else {}
            sizes = [found.get(name) for name in ("resident_bytes", "shared_bytes")]
            footprint = Footprint(*(size if isinstance(size, int) else 0 for size in sizes))
            kept = (dict(self._plugins), dict(self._variables))
            id_ = text(found.get("snapshot_id"), 64)
            return RemoteSnapshot(self._server, self.path, id_, footprint, *kept)

    def state_writer(self, skip: Mapping[str, str], limit_bytes: int) -> ForkedWriter:
        """Refuse: no states of remote kernels are stored."""
        del skip, limit_bytes
        raise ForkRefused(["it runs on another machine, and its state is not stored here"])

    def upload_file(self, filename: str, content: bytes) -> str:
        """Write a file into the working directory; the next cell finds it."""
        if not is_plain_name(filename):
            raise ValueError(f"{filename!r} is not the name of a file without folders")
        with Folder.at(self._cwd) as folder, folder.replacing(filename) as target:
            target.write(content)
        return filename
