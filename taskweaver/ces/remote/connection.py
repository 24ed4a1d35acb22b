"""The way to a server of kernels: requests that are repeated when a connection is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from taskweaver.ces.claims import text
from taskweaver.ces.errors import (
    KernelClosed,
    KernelError,
    KernelStartFailed,
    PluginLoadFailed,
)
from taskweaver.utils.redact import register_secret
from taskweaver.utils.system.network import tls_context

_TRY_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 0.02, 3.0
_CONNECT_S, _SILENCE_S, _ANSWER_S = 10.0, 45.0, 700.0
"""Limits of time: for a connection, between two signs of life of a stream, and for an answer."""
_LATER = frozenset({429, 503})
"""Statuses of requests that may succeed a little later."""


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
    """A server of kernels. Close it. Its methods may be called from any thread.

    Attributes:
        url: Its address.
    """

    def __init__(self, url: str, token: str, *, try_s: float = _TRY_S) -> None:
        """Prepare to send requests; nothing is sent yet.

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
        """End the connections; requests that wait end with an error."""
        self._is_closed.set()
        self._http.close()

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """Return the answer to a request, from JSON; None for an empty one.

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
        """Turn errors of the connection into one of kernels; ignore them before the last try."""
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
            "A server that ssh alone reaches needs a tunnel: see docs/server.md.",
        )


def quoted(path: str) -> str:
    """Return a path as it stands in an address."""
    return quote(path, safe="/")


def refusal(response: Any) -> KernelError:
    """Return the error for a response that is one."""
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    found = problem if isinstance(problem, dict) else {}
    detail = text(found.get("detail"), 2000) or f"The server answered {response.status_code}."
    kind = text(found.get("type"), 200).rpartition(":")[2]
    if kind == "plugin-load-failed":
        return PluginLoadFailed(detail)
    if kind in {"kernel-closed", "stopped"}:
        return KernelClosed(detail)
    hint = "Set execution.server_token." if kind in {"token-missing", "token-invalid"} else ""
    return ServerRefused(response.status_code, detail, hint)
