"""The one way out of a sandbox without network: a proxy that knows which hosts are allowed.

It listens on a local socket that is shown inside; `inkernel.sandbox.bridge` carries the requests
of clients there. It looks names up itself and connects to the very addresses it has judged, so
neither a name nor a second look-up can lead to this machine or its networks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import h11

from taskweaver.ces.local_server import SocketServer
from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.ces.sandbox.hosts import KEY, AllowedHosts
from taskweaver.ces.sandbox.http_messages import (
    END,
    BadRequest,
    ClientSide,
    ProxyRequest,
    ServerSide,
)
from taskweaver.utils.system.network import IDLE_S, Stream, carry, idle_limit, is_public

_HEAD_BYTES = 16 << 10
_MOST_CONNECTIONS = 64
_MOST_LOOKUPS = 8
_CONNECT_S = 10.0


class _Refused(Exception):
    """The client gets a page that says why, and nothing else."""

    def __init__(self, status: int, reason: str, text: str) -> None:
        super().__init__(text)
        body = f"{text}\n".encode()
        lines = [
            # Clients show the reason of a refused tunnel, and not its text.
            f"HTTP/1.1 {status} {reason}", "Content-Type: text/plain; charset=utf-8",
            f"Content-Length: {len(body)}", "Connection: close",
        ]  # fmt: skip
        self.page = "\r\n".join(lines).encode("latin-1") + END + body


class EgressProxy(SocketServer):
    """A proxy for one sandbox, to be closed. No other user can look into the socket's folder."""

    def __init__(
        self,
        hosts: Iterable[str],
        is_permitted: Callable[[str], bool] = is_public,
        idle_s: float = IDLE_S,
    ) -> None:
        """Start the server.

        Args:
            hosts: Hosts that may be reached, see `AllowedHosts`.
            is_permitted: Judges numeric addresses of allowed hosts.
            idle_s: Longest time in seconds without a byte on a connection.

        Raises:
            ConfigError: If a host is not one.
            OSError: If the socket cannot be made.
        """
        self._hosts = AllowedHosts(hosts)
        self._is_permitted = is_permitted
        self._idle_s = idle_s
        self._folder = private_folder()
        limits = {"backlog": _MOST_CONNECTIONS, "limit_bytes": _HEAD_BYTES}
        try:
            super().__init__(self._folder / "egress", "egress-proxy", **limits)
        except BaseException:
            remove_folder(self._folder)
            raise
        self._lookups = ThreadPoolExecutor(_MOST_LOOKUPS, thread_name_prefix="egress-lookup")
        self._thread.start()

    def close(self) -> None:
        """End the proxy and every connection. Safe to call again."""
        super().close()
        # A look-up cannot be broken off: its thread ends when the resolver gives up.
        self._lookups.shutdown(wait=False, cancel_futures=True)
        remove_folder(self._folder)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST_CONNECTIONS:
            text = f"there are {_MOST_CONNECTIONS} connections already; close some and try again"
            writer.write(_Refused(503, "Too many connections", text).page)
            writer.close()
            return
        await super()._meet(reader, writer)

    async def _attend(self, client: Stream) -> None:
        own = ClientSide(client)
        try:
            request = await self._request(client, own)
            server = await self._connect(request)
            try:
                if request.forwarded is None:
                    await client.send(b"HTTP/1.1 200 Connection established" + END)
                    await carry(client, server, self._idle_s)
                else:
                    await self._fetch(own, ServerSide(server), request, request.forwarded)
            finally:
                server.abort()
        except _Refused as refused:
            await self._finish(client, refused.page)

    async def _request(self, client: Stream, own: ClientSide) -> ProxyRequest:
        try:
            async with asyncio.timeout(self._idle_s):
                request = own.read_head(await client.reader.readuntil(END))
        except asyncio.LimitOverrunError:
            text = f"the head of the request has more than {_HEAD_BYTES} bytes"
            raise _Refused(431, "Header too long", text) from None
        except (BadRequest, asyncio.IncompleteReadError) as error:
            raise _Refused(400, "Bad request", str(error)) from error
        if (request.host, request.port) not in self._hosts:
            text = (
                f"{request.host}, port {request.port}, is not allowed: add it to {KEY} to let code "
                f"reach it"
            )
            raise _Refused(403, f"Not in {KEY}", text)
        return request

    async def _connect(self, request: ProxyRequest) -> Stream:
        where = f"{request.host}, port {request.port}"
        addresses = await self._addresses(request)
        reason: Exception | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    # The address is numeric: nothing is looked up again.
                    return Stream(*await asyncio.open_connection(address, request.port))
            except OSError as error:
                reason = error
        text = f"{where}, cannot be reached: {reason or 'it has no address'}"
        raise _Refused(502, "Cannot be reached", text) from reason

    async def _addresses(self, request: ProxyRequest) -> list[str]:
        """Return the addresses of a host, all of which must be permitted."""
        look_up = partial(socket.getaddrinfo, request.host, request.port, type=socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(self._idle_s):
                found = await self._loop.run_in_executor(self._lookups, look_up)
        except (OSError, UnicodeError) as error:
            text = f"{request.host} cannot be looked up: {error}"
            raise _Refused(502, "Cannot be looked up", text) from error
        addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
        for address in addresses:
            if not self._is_permitted(address):
                text = (
                    f"{request.host} is at {address}, which is not a public address: only "
                    f"execution.network lets code reach it, with all of the network"
                )
                raise _Refused(403, "Not a public address, needs execution.network", text)
        return addresses

    async def _fetch(
        self, client: ClientSide, server: ServerSide, request: ProxyRequest, forwarded: h11.Request
    ) -> None:
        """Pass one request on, and the reply back."""
        has_begun = False
        problem: BaseException | None = None
        try:
            async with idle_limit(self._idle_s) as touch, asyncio.TaskGroup() as exchange:
                await server.send(forwarded)
                upload = exchange.create_task(_upload(client, server, touch))
                async for event in server.reply(touch):
                    await client.send(event)
                    has_begun = True
                    touch()
                upload.cancel()
        except* (OSError, h11.ProtocolError, BadRequest) as errors:
            problem = errors.exceptions[0]
        if problem is None or has_begun:
            return
        if isinstance(problem, BadRequest):
            raise _Refused(400, "Bad request", str(problem)) from problem
        why = str(problem) or "not in time"
        text = f"{request.host}, port {request.port}, gave no reply: {why}"
        raise _Refused(502, "No reply", text) from problem


async def _upload(client: ClientSide, server: ServerSide, touch: Callable[[], None]) -> None:
    with suppress(OSError):  # a server may answer, and end, before it has read everything
        await client.send_body_to(server, touch)
