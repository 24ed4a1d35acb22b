"""Which addresses may be opened."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from taskweaver.ext_role.web_explorer.errors import PageError


class Addresses:
    """The addresses a browser may open: web pages, of some hosts or of all."""

    def __init__(self, allowed_hosts: Sequence[str]) -> None:
        """Take names of hosts, each with all below it; none allows every host."""
        self._hosts = [host.strip().lower().strip(".") for host in allowed_hosts]

    def problem(self, url: str) -> str:
        """Say why an address may not be opened; empty when it may."""
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError as error:
            return f"{url[:200]!r} is no address: {error}"
        if parts.scheme not in {"http", "https"}:
            return f"only http and https addresses can be opened, not {url[:200]!r}"
        if not host or port == 0:
            return f"{url[:200]!r} names no host"
        is_known = any(host == name or host.endswith(f".{name}") for name in self._hosts)
        if self._hosts and not is_known:
            return (
                f"the host {host} is not allowed here (web_explorer.allowed_hosts:"
                f" {', '.join(self._hosts)})"
            )
        return ""

    def checked(self, text: str) -> str:
        """Return an address with a scheme, checked against the allowed ones.

        Raises:
            PageError: If it may not be opened.
        """
        url = text.strip()
        if "://" not in url:
            url = f"https://{url}"
        problem = self.problem(url)
        if problem:
            raise PageError(f"{problem}.")
        return url
