"""Kernels of another machine, by the kernel API of a server there."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.claims import items, mapping, text, texts
from taskweaver.ces.common import (
    CellStatus,
    CellTables,
    ExecutionArtifact,
    ExecutionResult,
    OriginalUses,
    OutputHandler,
    PluginCode,
    Stream,
)
from taskweaver.ces.errors import (
    KernelClosed,
    KernelError,
    KernelInterrupted,
    KernelStartFailed,
    PluginLoadFailed,
)
from taskweaver.ces.kernel.operations import Interrupts
from taskweaver.ces.kernel.outcome import reported
from taskweaver.ces.kernel_server import (
    KernelServer,
    RemoteFiles,
    ServerRefused,
    ServerUnreachable,
    quoted,
    read_events,
)
from taskweaver.utils.system.forks import bind_to_process

_OUTPUT_CHARS = 1 << 20
_NOT_FOUND, _CONFLICT = 404, 409
_LOST = "The server of the kernels has lost the session: it was restarted, or ended the session."


def result_from(exec_id: str, code: str, answer: Any, details: Any) -> ExecutionResult:
    """Return the result in an answer.

    Args:
        exec_id: Id of the cell.
        code: Its code.
        answer: The result, in the shape of the original.
        details: The facts for which that has no place.
    """
    found, more = mapping(answer), mapping(details)
    claims = {**found, "calls": more.get("calls"), "tables": more.get("tables")}
    result = reported(exec_id, code, claims)
    result.is_success = found.get("is_success") is True
    error, seconds = text(found.get("error"), _OUTPUT_CHARS), more.get("duration_s")
    result.error = None if result.is_success else error or "The server gave no result."
    status = next((name for name in get_args(CellStatus) if name == more.get("status")), None)
    result.status = status or ("ok" if result.is_success else "error")
    result.output = "" if result.output is None else result.output
    result.stdout, result.stderr = _output(found.get("stdout")), _output(found.get("stderr"))
    result.artifact = [_artifact(item) for item in items(found.get("artifact"))]
    result.is_state_lost = more.get("is_state_lost") is True
    result.is_truncated = more.get("is_truncated") is True
    result.duration_s = float(seconds) if isinstance(seconds, int | float) else 0.0
    return result


def _output(value: Any) -> list[str]:
    whole = "".join(piece for piece in items(value) if isinstance(piece, str))
    return [text(whole, _OUTPUT_CHARS)] if whole else []


def _artifact(item: Any) -> ExecutionArtifact:
    found = mapping(item)
    names = ("name", "type", "mime_type", "original_name", "file_name", "preview")
    facts = dict(zip(names, texts([found.get(name) for name in names]), strict=True))
    content = found.get("file_content")
    return ExecutionArtifact(
        **facts,
        file_content=content if isinstance(content, str) else "",
        file_content_encoding=text(found.get("file_content_encoding")) or "str",
    )


class RemoteKernel(OriginalUses):
    """A kernel on another machine. Files go there before a cell and come back afterwards.

    Attributes:
        state: ``not started``, ``ready``, ``busy`` or ``stopped``.
        path: Path of its session at the server.
    """

    def __init__(self, server: KernelServer, session_id: str, cwd: Path) -> None:
        """Prepare a kernel. The session is made when needed."""
        self.state = "not started"
        self.session_id = session_id
        self.path = f"/sessions/{quoted(session_id)}"
        self._server = server
        self.cwd = cwd
        self._files = RemoteFiles(server, self.path, cwd)
        self._interrupts = Interrupts()
        self._one_cell = threading.RLock()
        self._plugins: dict[str, PluginCode] = {}
        self._variables: dict[str, str] = {}
        bind_to_process(self)
        self._is_there = self._has_run = False
        self._is_lost = False
        self._is_closed = False

    @property
    def has_state(self) -> bool:
        """True if the kernel runs and has all variables."""
        return self._is_there and self._has_run

    def start(self) -> None:
        """Do nothing: the server starts kernels fast, when the first operation comes."""

    def stop(self) -> None:
        """End the kernel. The files that came here stay."""
        self._is_closed = True
        self.interrupt()
        with self._one_cell:
            if self._is_there:
                # A server that is away ends its sessions by itself when it stops.
                with suppress(KernelError):
                    self._server.ask("DELETE", self.path)
            self._is_there = False
            self.state = "stopped"

    def interrupt(self) -> None:
        """Interrupt the running cell, or the next."""
        self._interrupts.request()
        if self.state == "busy":
            with suppress(KernelError):  # the cell's own reader reports a server that is away
                self._post("interrupt")

    def _post(self, operation: str, **body: Any) -> Any:
        """Ask the server for an operation of this session, and return the answer."""
        return self._server.ask("POST", f"{self.path}/{operation}", json=body or None)

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Exclude operations of other threads. An interrupt ends the operations of the block."""
        with self._one_cell, self._interrupts.kept():
            yield

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell to its end (see `Client`). A server that goes away is a result, too."""
        with self.operation():
            try:
                self._ready()
                self._files.upload()
                self._interrupts.check()
            except KernelInterrupted as error:
                return ExecutionResult(exec_id, code, error=str(error), status="interrupted")
            is_lost, self._is_lost = self._is_lost, False
            try:
                result = self._run(exec_id, code, on_output)
                result.log += [("warning", "files", line) for line in self._files.download()]
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
            elif kind in {"result", "details"}:
                ended[kind] = data

        # An id of its own for each: a cell with the id of an earlier one runs anew.
        wire_id = f"cell-{secrets.token_hex(8)}"
        self.state = "busy"
        try:
            self._post("execute", exec_id=wire_id, code=code, stream=True)
            if self._interrupts.is_requested:  # it came before the server knew of the cell
                self._post("interrupt")
            read_events(self._server, f"{self.path}/execute/{wire_id}/stream", take)
        except BaseException as error:
            if not isinstance(error, KernelError):  # the caller was interrupted
                with suppress(KernelError):
                    self._post("interrupt")
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
        """Make the session, unless present at the server.

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
        self._files.forget()
        self._create()
        self._is_there = True
        self.state = "ready"
        if self._variables:
            self._post("variables", variables=self._variables)
        for plugin in self._plugins.values():
            self._send_plugin(plugin)

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
            self._post("restart")

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load plugins (see `Client`). Removed plugins stay until the kernel restarts."""
        with self.operation():
            self._ready()
            for name in removed:
                self._plugins.pop(name, None)
            problems = {}
            for plugin in plugins:
                if self._plugins.get(plugin.name) == plugin:
                    continue
                if problem := self._send_plugin(plugin):
                    problems[plugin.name] = problem
                else:
                    self._plugins[plugin.name] = plugin
            return problems

    def _send_plugin(self, plugin: PluginCode) -> str:
        """Load a plugin at the server, and return the problem, or ""."""
        try:
            self._post("plugins", name=plugin.name, code=plugin.source, config=dict(plugin.config))
        except PluginLoadFailed as error:
            return error.detail
        return ""

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables that plugins read, now or when the session is made."""
        with self.operation():
            self._variables |= {name: str(value) for name, value in session_var_dict.items()}
            if self._is_there:
                self._post("variables", variables=self._variables)

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files (see `Client`)."""
        with self.operation():
            self._ready()
            answer = self._post("overview", files=[dict(item) for item in files])
            return mapping(mapping(answer).get("files"))


class RemoteManager:
    """Owner of remote kernels. Tables that cells end with stay at the server."""

    start_problem = ""
    bounds: tuple[ResourceBound, ...] = ()

    def __init__(self, url: str, token: str, env_dir: Path) -> None:
        """Prepare to use the server at an address.

        Args:
            url: The address.
            token: Token for it.
            env_dir: Where sessions without a folder of their own keep their files.

        Raises:
            KernelStartFailed: If the address is none.
        """
        self.tables = CellTables()
        self._server = KernelServer(url, token)
        self._env_dir = env_dir
        self._lock = threading.Lock()
        self._clients: dict[str, RemoteKernel] = {}
        bind_to_process(self)

    def initialize(self) -> None:
        """Do nothing: a connection is made when needed."""

    def clean_up(self) -> None:
        """Stop every kernel, and end the connections."""
        for client in self._clients.values():
            client.stop()
        self._server.close()

    def get_session_client(
        self,
        session_id: str,
        env_id: str | None = None,  # noqa: ARG002
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        *,
        devices: tuple[Path, ...] = (),  # noqa: ARG002
    ) -> RemoteKernel:
        """Return the client of a session, made on first call (see `Manager`).

        Raises:
            KernelStartFailed: If there can be no working directory here.
        """
        kept = self._clients.get(session_id)
        if kept is not None and kept.state != "stopped":
            return kept
        folder = Path(session_dir or self._env_dir / "sessions" / session_id)
        where = Path(cwd) if cwd else folder / "cwd"
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KernelStartFailed(f"{where} cannot be used: {error.strerror}.") from error
        client = RemoteKernel(self._server, session_id, where.resolve())
        with self._lock:
            others = {id_: one for id_, one in self._clients.items() if one.state != "stopped"}
            self._clients = others | {session_id: client}
        return client

    def get_kernel_mode(self) -> str:
        """Return how kernels run."""
        return "remote"
