"""One HTTP request, bounded in size and time. Redirects are left to the caller."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError
from taskweaver.utils.redact import redact
from taskweaver.utils.system.network import tls_context

MOST_BYTES = 2 << 20
MOST_SECONDS = 20.0
"""Longest time for one page, redirects included, however slowly its server drips."""

_CONNECT_S, _READ_S = 5.0, 10.0
_AGENT = "Mozilla/5.0 (compatible; taskweaver)"


class WebError(TaskWeaverError):
    """A failed request to the web, whose text holds address and reason, without keys."""

    def __init__(self, problem: str) -> None:
        super().__init__(redact(problem))


@dataclass(frozen=True, slots=True)
class WebResponse:
    """Response of a server.

    Attributes:
        status: The HTTP status.
        media_type: Type of the body, for example ``text/html``; lower case.
        charset: Encoding of the body, as the server declares it; may be empty.
        location: Target of a redirect; may be empty.
        body: The first `MOST_BYTES` of the body.
    """

    status: int
    media_type: str
    charset: str
    location: str
    body: bytes


def get(
    url: str,
    *,
    params: Mapping[str, str] | None = None,
    address: str = "",
    until: float | None = None,
) -> WebResponse:
    """Send a GET request.

    Args:
        url: An http or https address.
        params: Parameters of the query, added to those of `url`.
        address: IP address to connect to in place of the host's; the certificate is checked
            against the host all the same.
        until: When to give up, by the monotonic clock; None for `MOST_SECONDS` from now.

    Raises:
        WebError: If there is no answer.
    """
    import httpx2

    until = time.monotonic() + MOST_SECONDS if until is None else until
    # Uncompressed: a small body must not unfold into a large one.
    sent = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    timeout = httpx2.Timeout(_READ_S, connect=_CONNECT_S)
    try:
        target, extensions = httpx2.URL(url), {}
        if params:
            target = target.copy_merge_params(params)
        if address:
            sent["Host"] = target.netloc.decode("ascii")
            extensions = {"sni_hostname": target.raw_host.decode("ascii")}
            target = target.copy_with(host=address)
        # A client of its own: no cookie and no connection is shared between hosts.
        with (
            httpx2.Client(timeout=timeout, follow_redirects=False, verify=tls_context()) as client,
            client.stream("GET", target, headers=sent, extensions=extensions) as response,
        ):
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise WebError("the answer is compressed, which was not asked for")
            body = bytearray()
            for part in response.iter_raw(1 << 16):
                body += part
                if time.monotonic() > until:
                    raise WebError(f"it took longer than {MOST_SECONDS:g} seconds")
                if len(body) >= MOST_BYTES:
                    break
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            return WebResponse(
                response.status_code,
                kind if kind.count("/") == 1 else "text/plain",  # RFC 2045
                response.charset_encoding or "",
                response.headers.get("location", ""),
                bytes(body[:MOST_BYTES]),
            )
    except httpx2.TimeoutException as error:
        raise WebError("no answer in time") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise WebError(str(error) or type(error).__name__) from error
