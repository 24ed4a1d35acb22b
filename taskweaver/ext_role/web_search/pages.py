"""Reader of pages of the web, but not of this machine or the machine's network."""

from __future__ import annotations

import codecs
import re
import socket
import time
from dataclasses import dataclass

from taskweaver.ext_role.web_search.http import MOST_SECONDS, WebError, WebResponse, get
from taskweaver.utils.markup.html import html_text
from taskweaver.utils.system.network import is_public

_MOST_REDIRECTS = 5
_MOST_ADDRESSES = 2
_READABLE = ("text/html", "application/xhtml+xml", "text/plain")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)
# Python's other codecs are no encodings of pages, and some take quadratic time.
_CHARSETS = ("utf", "iso", "ascii", "cp", "koi8", "mac", "big5", "gb", "euc", "shift_jis", "tis")


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page that was read, at the address after redirects. The title may be empty."""

    url: str
    title: str
    text: str


def read_page(url: str, *, allows_private: bool) -> WebPage:
    """Read a page. `allows_private` admits addresses of this machine and the machine's network.

    Raises:
        WebError: If it cannot be read, or may not.
    """
    until = time.monotonic() + MOST_SECONDS
    for _ in range(_MOST_REDIRECTS + 1):
        answer = _visit(url, until, allows_private=allows_private)
        if answer.status not in (301, 302, 303, 307, 308) or not answer.location:
            return _page(url, answer)
        url = _joined(url, answer.location)
    raise WebError(f"more than {_MOST_REDIRECTS} redirects")


def _visit(url: str, until: float, *, allows_private: bool) -> WebResponse:
    """Request a page from a checked address, and from no other address.

    The host is looked up once, here: looked up again, it might lead somewhere else.
    """
    import httpx2

    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as error:
        raise WebError(f"{url[:200]!r} is no address") from error
    is_plain = parsed.scheme in ("http", "https") and parsed.host and not parsed.userinfo
    if not is_plain or (parsed.port or 1) > 65535:
        raise WebError(f"{url[:200]!r} is no plain http address")
    host = parsed.raw_host.decode("ascii")
    addresses = _looked_up(host, parsed.port or (443 if parsed.scheme == "https" else 80))
    if not allows_private and not all(map(is_public, addresses)):
        raise WebError(f"{host} is not on the public web")
    *others, last = addresses[:_MOST_ADDRESSES]
    for address in others:
        try:
            return get(url, address=address, until=until)
        except WebError:
            continue  # another address of the host may answer; the last one's failure is told
    return get(url, address=last, until=until)


def _looked_up(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise WebError(f"{host} has no address") from error
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def _joined(url: str, location: str) -> str:
    import httpx2

    try:
        return str(httpx2.URL(url).join(location))
    except (httpx2.InvalidURL, ValueError) as error:
        raise WebError(f"a redirect leads to {location[:200]!r}, which is no address") from error


def _page(url: str, answer: WebResponse) -> WebPage:
    if answer.status != 200:
        raise WebError(f"the server answers {answer.status}")
    if answer.media_type not in _READABLE:
        raise WebError(f"it is {answer.media_type}, not a page of text")
    text = _decoded(answer)
    if answer.media_type == "text/plain":
        return WebPage(url, "", text)
    found = html_text(text)
    return WebPage(url, found.title, found.text)


def _decoded(answer: WebResponse) -> str:
    said = _META_CHARSET.search(answer.body[:4096])
    for charset in (answer.charset, said[1].decode("ascii") if said else ""):
        try:
            name = codecs.lookup(charset).name
        except (LookupError, ValueError):
            continue  # nothing is said, or no encoding of that name is known
        if name.startswith(_CHARSETS):
            return answer.body.decode(name, "replace")
    return answer.body.decode("utf-8", "replace")
