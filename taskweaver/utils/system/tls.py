"""TLS contexts of HTTP clients."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from functools import lru_cache

from taskweaver.utils.system.platform import SYSTEM

_OWN = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables of the environment that name certificates in place of the system's."""


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
