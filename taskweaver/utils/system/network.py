"""Connections: public addresses, TLS contexts, and bytes carried between two ends, both ways."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network

from taskweaver.utils.system.platform import SYSTEM

_OWN = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables of the environment that name certificates in place of the system's."""

IDLE_S = 60.0
"""Longest time in seconds without a byte in either direction."""

_CHUNK_BYTES = 64 << 10
_GLOBAL_IPV6, _TRANSLATED = ip_network("2000::/3"), ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether a numeric address is one of the public internet's.

    Addresses of this machine, of its networks and of groups are not, nor are those that carry
    another address inside. One that is translated to IPv4 (NAT64) is what the inner one is.
    """
    found = ip_address(address.partition("%")[0])
    if found in _TRANSLATED:
        found = IPv4Address(int(found) & 0xFFFFFFFF)
    if not found.is_global or found.is_multicast or found.is_reserved:
        return False
    return isinstance(found, IPv4Address) or (found in _GLOBAL_IPV6 and found.sixtofour is None)


def tls_context() -> ssl.SSLContext:
    """Return a TLS context for an HTTP client.

    On Linux clients share one, until the certificates change: to load them takes longer than to
    make the rest of a client. On macOS the system verifies; a handshake holds its context, so that
    each client has one of its own.
    """
    import httpx2

    if SYSTEM != "linux":
        return httpx2.create_ssl_context()
    paths = ssl.get_default_verify_paths()
    places = [*map(os.environ.get, _OWN), paths.openssl_cafile, paths.openssl_capath]
    return _loaded(*((place, _changed_at(place)) for place in places if place))


def _changed_at(place: str) -> int:
    with suppress(OSError):  # it is not there
        return os.stat(place).st_mtime_ns  # noqa: PTH116 - for each client
    return 0


@lru_cache(maxsize=4)
def _loaded(*_places: tuple[str, int]) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


@dataclass(frozen=True, slots=True)
class Stream:
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def __post_init__(self) -> None:
        """Have `send` wait until the system took everything: then ending at once loses nothing."""
        self.writer.transport.set_write_buffer_limits(0)

    async def send(self, data: bytes) -> None:
        """Write.

        Raises:
            OSError: If the other end is gone.
        """
        self.writer.write(data)
        await self.writer.drain()

    def abort(self) -> None:
        """End the connection now. Safe to call again."""
        self.writer.transport.abort()


@asynccontextmanager
async def idle_limit(idle_s: float) -> AsyncIterator[Callable[[], None]]:
    """Give a function that is to be called whenever something moves.

    Raises:
        TimeoutError: If it is not called for so many seconds.
    """
    now = asyncio.get_running_loop().time
    async with asyncio.timeout(idle_s) as deadline:
        yield lambda: deadline.reschedule(now() + idle_s)


async def pump(source: Stream, target: Stream, touch: Callable[[], None]) -> None:
    """Carry bytes one way until the source says that there will be no more, and pass that on.

    Raises:
        OSError: If either end is gone.
    """
    while data := await source.reader.read(_CHUNK_BYTES):
        touch()
        await target.send(data)
        touch()
    target.writer.write_eof()


async def carry(one: Stream, other: Stream, idle_s: float = IDLE_S) -> None:
    """Carry bytes both ways until both ends are through, one is gone, or nothing moves."""
    try:
        async with idle_limit(idle_s) as touch, asyncio.TaskGroup() as both:
            both.create_task(pump(one, other, touch))
            both.create_task(pump(other, one, touch))
    except* OSError:
        ...  # the ordinary end of many connections
    finally:
        one.abort()
        other.abort()
