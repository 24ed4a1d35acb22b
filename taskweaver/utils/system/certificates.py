"""Certificates that servers are verified with."""

from __future__ import annotations

import os
import ssl
from functools import cache

_OWN = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables of the environment that name certificates in place of the system's."""


def certificates() -> ssl.SSLContext:
    """Return what the servers of HTTP clients are verified with: the same for all clients.

    Loading the certificates takes longer than making the rest of a client.
    """
    return _loaded(*map(os.environ.get, _OWN))


@cache
def _loaded(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()
