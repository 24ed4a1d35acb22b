"""Heads of HTTP messages as a proxy reads them and passes them on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskweaver.ces.sandbox.hosts import Authority

END = b"\r\n\r\n"
"""What a head ends with."""
_OF_ONE_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade")
)
_URL = re.compile(r"http://(?P<authority>[^/?#]*)(?P<path>/[^#]*)?(?P<query>\?[^#]*)?", re.I)
_METHOD = re.compile(r"[A-Z]+")
_VERSION = re.compile(r"HTTP/1\.[01]")
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})( |$)")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class BadHead(ValueError):
    """It is not the head of a message that a proxy can pass on."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks a proxy for.

    Attributes:
        host: Where it is to go.
        port: The port there.
        forwarded: The head to send there; empty for a tunnel.
    """

    host: str
    port: int
    forwarded: bytes = b""

    @property
    def is_tunnel(self) -> bool:
        """Whether everything that follows is to be carried as it is."""
        return not self.forwarded


def read_request(head: bytes) -> Request:
    """Read the head of a request.

    Raises:
        BadHead: If it is none, or none for a proxy.
    """
    first, *fields = _lines(head)
    method, _, rest = first.partition(" ")
    target, _, version = rest.partition(" ")
    if not _METHOD.fullmatch(method) or not _VERSION.fullmatch(version):
        raise BadHead("this is not an HTTP request")
    kept = _end_to_end(fields)
    try:
        if method == "CONNECT":
            asked = Authority.parse(target)
            if asked.port is None:
                raise BadHead("a port is missing")
            return Request(asked.host, asked.port)
        url = _URL.fullmatch(target)
        if url is None:
            raise BadHead("a proxy needs the whole http:// address")
        asked = Authority.parse(url["authority"])
    except ValueError as error:
        raise BadHead(str(error)) from error
    # The host is that of the address, whatever the client says it is.
    others = [line for line in kept if _name(line) != "host"]
    path = (url["path"] or "/") + (url["query"] or "")
    lines = [f"{method} {path} {version}", f"Host: {url['authority']}", *others]
    return Request(asked.host, asked.port or 80, _closing(lines))


def read_reply(head: bytes) -> tuple[int, bytes]:
    """Return the status of a reply, and its head as the client is to get it.

    Raises:
        BadHead: If it is no reply.
    """
    first, *fields = _lines(head)
    status = _STATUS.match(first)
    if status is None:
        raise BadHead("this is not an HTTP reply")
    number = int(status[1])
    if 100 <= number < 200:
        return number, head
    return number, _closing([first, *_end_to_end(fields)])


def _lines(head: bytes) -> list[str]:
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if any(_FORBIDDEN.search(line) for line in lines):
        raise BadHead("there are control characters in the head")
    return lines


def _end_to_end(fields: list[str]) -> list[str]:
    """Return the header lines that are meant for the other end, not for the next hop."""
    if any(":" not in line or line[0] in " \t:" for line in fields):
        raise BadHead("there is a line in the head that is no header")
    named = {
        name.strip().lower()
        for line in fields
        if _name(line) == "connection"
        for name in line.partition(":")[2].split(",")
    }
    # A body could not be told from what follows without these, whoever names them.
    dropped = (named - {"content-length", "transfer-encoding", "host"}) | _OF_ONE_HOP
    return [line for line in fields if _name(line) not in dropped]


def _name(line: str) -> str:
    return line.partition(":")[0].strip().lower()


def _closing(lines: list[str]) -> bytes:
    """Return a head after whose message the connection ends: no second request can follow."""
    return "\r\n".join([*lines, "Connection: close"]).encode("latin-1") + END
