"""The TLS contexts of HTTP clients."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from taskweaver.utils.system import network
from taskweaver.utils.system.network import tls_context

linux = pytest.mark.skipif(
    network.SYSTEM != "linux", reason="clients share a context on Linux alone"
)


def test_servers_are_verified() -> None:
    context = tls_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@linux
def test_clients_share_a_context_until_the_certificates_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = tls_context()
    assert tls_context() is system
    file = tmp_path / "own.pem"
    found = ssl.get_default_verify_paths()
    known = Path(found.cafile or "/etc/ssl/certs/ca-certificates.crt")
    if not known.is_file():
        pytest.skip("no certificates are installed here")
    file.write_bytes(known.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    own = tls_context()
    assert own is not system
    assert own.verify_mode == ssl.CERT_REQUIRED
    os.utime(file, ns=(0, 0))
    assert tls_context() not in (own, system)


def test_where_the_system_verifies_each_client_has_a_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "SYSTEM", "darwin")
    assert tls_context() is not tls_context()
