"""The way to a server of kernels: requests, streams of events and files across lost connections."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from taskweaver.ces.claims import from_json, mapping, text
from taskweaver.ces.errors import KernelClosed, KernelError, KernelStartFailed, PluginLoadFailed
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.redact import register_secret
from taskweaver.utils.system.network import tls_context

_TRY_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 0.02, 3.0
_CONNECT_S, _SILENCE_S, _ANSWER_S = 10.0, 45.0, 700.0
"""Limits of time: for a connection, between two signs of life of a stream, and for an answer."""
_LATER = frozenset({429, 503})
"""Statuses of requests that may succeed a little later."""
_MOST_LOST = 20
"""Most connections in a row that are lost without an event."""

OnEvent = Callable[[str, Any], None]
_CHUNK_BYTES = 1 << 20
_State = tuple[int, int]
"""Size of a file and the time of its last change."""


class ServerUnreachable(KernelError):
    """The server of the kernels does not answer."""


class ServerRefused(KernelError):
    """The server of the kernels refuses a request.

    Attributes:
        status: Status of its response.
    """

    def __init__(self, status: int, detail: str, hint: str = "") -> None:
        super().__init__(detail, hint)
        self.status = status


class KernelServer:
    """A server of kernels. Close it. Any thread may call the methods.

    Attributes:
        url: Its address.
    """

    def __init__(self, url: str, token: str, *, try_s: float = _TRY_S) -> None:
        """Prepare to send requests, without sending anything yet.

        Args:
            url: Address of the server.
            token: Token for it.
            try_s: Time in seconds for which a request is repeated when the connection fails.

        Raises:
            KernelStartFailed: If the address is none of HTTP.
        """
        import httpx2

        require_address(url)
        register_secret(token)
        self.url = url.rstrip("/")
        self._try_s = try_s
        self._is_closed = threading.Event()
        limits = httpx2.Timeout(_ANSWER_S, connect=_CONNECT_S)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.Client(
            base_url=self.url, headers=headers, timeout=limits, verify=tls_context()
        )

    def close(self) -> None:
        """End the connections. Requests that wait end with an error."""
        self._is_closed.set()
        self._http.close()

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """Return the answer to a request, from JSON, or None for an empty answer.

        Every request here may be repeated: it is sent again when the connection is lost.

        Args:
            method: HTTP method.
            path: Path below ``/api/v1``.
            **content: Body or query, as `httpx2.Client.request` takes them; `content` is a
                function that returns it anew.

        Raises:
            KernelError: If the server refuses it, or does not answer.
        """
        source = content.pop("content", None)
        for is_last in self._tries():
            if source is not None:
                content |= {"content": source()}
            with self._explained(is_last=is_last):
                response = self._http.request(method, f"/api/v1{path}", **content)
                if response.status_code in _LATER and not is_last:
                    continue
                if response.is_error:
                    raise refusal(response)
                return self._json(response) if response.content else None
        raise AssertionError("the last try returns or raises")

    def _json(self, response: Any) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise ServerRefused(
                response.status_code,
                f"{self.url} is not a server of kernels: its answer is not JSON.",
                "Set execution.server to the address that `taskweaver serve` prints.",
            ) from error

    @contextmanager
    def reading(self, path: str, **headers: str) -> Iterator[Any]:
        """Give the response to a request for a stream, once.

        Raises:
            KernelError: If the server refuses it, or the connection is lost.
        """
        import httpx2

        limits = httpx2.Timeout(_SILENCE_S, connect=_CONNECT_S)
        with (
            self._explained(is_last=True),
            self._http.stream("GET", f"/api/v1{path}", headers=headers, timeout=limits) as response,
        ):
            if response.is_error:
                response.read()
                raise refusal(response)
            yield response

    def _tries(self) -> Iterator[bool]:
        """Yield, with growing pauses, whether the try is the last."""
        deadline, pause_s = time.monotonic() + self._try_s, _FIRST_PAUSE_S
        while not self._is_closed.is_set():
            is_last = time.monotonic() + pause_s >= deadline
            yield is_last
            self._is_closed.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        raise ServerUnreachable("The application was stopped.")

    @contextmanager
    def _explained(self, *, is_last: bool) -> Iterator[None]:
        """Turn an error of the connection into an error of kernels, at the last try only."""
        import httpx2

        try:
            yield
        except (httpx2.TransportError, RuntimeError) as error:
            if self._is_closed.is_set():
                raise ServerUnreachable("The application was stopped.") from error
            if isinstance(error, RuntimeError):
                raise
            if is_last:
                reason = text(str(error), 300) or type(error).__name__
                raise ServerUnreachable(
                    f"The server of the kernels, {self.url}, does not answer: {reason}.",
                    "Check that it runs; without execution.server code runs here.",
                ) from error


def require_address(url: str) -> None:
    """Raise KernelStartFailed unless an address is one of HTTP."""
    if not url.startswith(("http://", "https://")):
        raise KernelStartFailed(
            f"execution.server must begin with http:// or https://, not {url}.",
            "To one that ssh alone reaches: ssh -N -L 8000:127.0.0.1:8000 HOST, and http://127.0.0.1:8000.",
        )


def quoted(path: str) -> str:
    """Return a path in the form for an address."""
    return quote(path, safe="/")


def refusal(response: Any) -> KernelError:
    """Return the error for a response that is one."""
    found = from_json(response.content)
    detail = text(found.get("detail"), 2000) or f"The server answered {response.status_code}."
    kind = text(found.get("type"), 200).rpartition(":")[2]
    if kind == "plugin-load-failed":
        return PluginLoadFailed(detail)
    if kind in {"kernel-closed", "stopped"}:
        return KernelClosed(detail)
    hint = "Set execution.server_token." if kind in {"token-missing", "token-invalid"} else ""
    return ServerRefused(response.status_code, detail, hint)


def read_events(server: KernelServer, path: str, on_event: OnEvent) -> None:
    """Read the events of an execution to the last one, across lost connections.

    `on_event` is called with the kind and the data of each event, each once.

    Raises:
        KernelError: If the server refuses, or the connection cannot be had again.
    """
    last, lost = 0, 0
    while True:
        before = last
        try:
            for kind, number, data in _events(server, path, last):
                last = number or last
                on_event(kind, data)
                if kind == "done":
                    return
        except ServerUnreachable:
            lost = lost + 1 if last == before else 0
            if lost >= _MOST_LOST:
                raise
        # A small request that is repeated until the server answers: then the stream goes on.
        server.ask("GET", "/health")


def _events(server: KernelServer, path: str, last: int) -> Iterator[tuple[str, int, Any]]:
    """Yield kind, number and data of each event after a number that one connection brings."""
    headers = {"Last-Event-ID": str(last)} if last else {}
    fields: dict[str, str] = {}
    with server.reading(path, **headers) as response:
        for line in response.iter_lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            complete, fields = fields, {}
            kind, number = complete.get("event", ""), complete.get("id", "")
            if not kind:
                continue  # a comment
            try:
                data = json.loads(complete.get("data", ""))
            except (ValueError, RecursionError):
                data = None
            yield kind, int(number[:12]) if number.isascii() and number.isdigit() else 0, data


class RemoteFiles:
    """Copies of files between a working directory here and the session's at the server.

    New and changed files go up before a cell and come down after it. Links and special files are
    left out, and nothing is deleted on the other side.
    """

    def __init__(self, server: KernelServer, session_path: str, cwd: Path) -> None:
        self._server = server
        self._path = f"{session_path}/files"
        self._cwd = cwd
        self._here: dict[str, _State] = {}
        self._there: dict[str, _State] = {}

    def forget(self) -> None:
        """Copy all files at the next `upload`: the server has a new session."""
        self._here, self._there = {}, {}

    def upload(self) -> None:
        """Send files that are new here or have changed.

        Raises:
            KernelError: If the server refuses a file, or does not answer.
            OSError: If a file cannot be read.
        """
        with Folder.at(self._cwd) as folder:
            for path, facts in folder.files():
                state = (facts.st_size, facts.st_mtime_ns)
                if self._here.get(path) != state:
                    self._send(folder, path)
                    self._here[path] = state

    def _send(self, folder: Folder, path: str) -> None:
        def chunks() -> Iterator[bytes]:
            with folder.open_file(path) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk

        place = f"{self._path}/{quoted(path)}"
        headers = {"Content-Type": "application/octet-stream"}
        facts = self._server.ask("PUT", place, content=chunks, headers=headers)
        self._there |= _states({"files": [facts]})

    def download(self) -> list[str]:
        """Fetch files that are new at the server or have changed.

        Returns:
            A line for each file that cannot be written here, once for each change of it.

        Raises:
            KernelError: If the server refuses, or does not answer.
        """
        problems = []
        listed = _states(self._server.ask("GET", self._path))
        with Folder.at(self._cwd) as folder:
            for path, state in listed.items():
                if self._there.get(path) == state:
                    continue
                try:
                    self._fetch(folder, path)
                except OSError as error:  # such as a folder of that name here
                    problems.append(f"{path} did not come from the server: {error.strerror}.")
                self._there[path] = state
        return problems

    def _fetch(self, folder: Folder, path: str) -> None:
        parent = PurePosixPath(path).parent
        folder.make_folders(str(parent))
        with (
            self._server.reading(f"{self._path}/{quoted(path)}") as response,
            folder.replacing(path) as file,
        ):
            for chunk in response.iter_bytes(_CHUNK_BYTES):
                file.write(chunk)
        if facts := folder.stat(path):
            self._here[path] = (facts.st_size, facts.st_mtime_ns)


def _states(answer: Any) -> dict[str, _State]:
    """Map the paths in a list of files to their states. Items of another shape are skipped."""
    listed = mapping(answer).get("files")
    states = {}
    for item in listed if isinstance(listed, list) else ():
        match item:
            case {"path": str(path), "size": int(size), "mtime_ns": int(mtime_ns)}:
                states[path] = (size, mtime_ns)
    return states
