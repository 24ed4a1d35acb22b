"""Which hosts code in a sandbox may reach."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from taskweaver.config.errors import ConfigError

KEY = "execution.allowed_hosts"
"""The configuration key of the list."""
_PORTS = frozenset((80, 443))
_AUTHORITY = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Authority:
    """A host, as named in an address.

    Attributes:
        host: Its name in small letters, or its address.
        port: Its port; None when none is named.
    """

    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Authority:
        """Read ``host`` or ``host:port``.

        Raises:
            ValueError: If it is neither.
        """
        match = _AUTHORITY.fullmatch(text)
        port = int(match["port"]) if match and match["port"] else None
        if match is None or (port is not None and not 0 < port < 1 << 16):
            raise ValueError(f"{text!r} is not a host, nor a host and a port")
        return cls(match["host"].strip("[]").removesuffix(".").lower(), port)


class AllowedHosts:
    """The hosts of a list."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Read a list of ``host``, ``host:port``, or either after ``*.`` for all names below.

        Raises:
            ConfigError: If an entry is none of these.
        """
        self._rules: list[tuple[bool, Authority]] = []
        for entry in entries:
            name = entry.strip().removeprefix("*.")
            try:
                self._rules.append((name != entry.strip(), Authority.parse(name)))
            except ValueError:
                what = "write example.org, example.org:8080 or *.example.org, in ASCII letters."
                raise ConfigError(KEY, f"{entry!r} is not the name of a host:", what) from None

    def __contains__(self, asked: tuple[str, int]) -> bool:
        host, port = asked
        return any(
            (host.endswith(f".{rule.host}") if is_below else host == rule.host)
            and (port in _PORTS if rule.port is None else port == rule.port)
            for is_below, rule in self._rules
        )
