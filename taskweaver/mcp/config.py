"""The key ``mcp.servers``: the servers and their permissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from taskweaver.config.errors import ConfigError
from taskweaver.config.module_config import ModuleConfig
from taskweaver.utils.file_system.links import absolute_path
from taskweaver.utils.redact import register_secret

_TIMEOUT_S = 30.0
_STDIO = ("command", "args", "env", "cwd")
_HTTP = ("url", "headers")
_COMMON = ("confirm", "tools", "timeout_s")
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "origin", "user-agent"})
"""Headers whose values are no secrets, but words that occur anywhere."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server.

    Attributes:
        name: Its name; functions begin with it.
        command: Program to start; empty for a server at an address.
        args: Its arguments.
        env: Variables it gets beside the few that any program needs.
        cwd: Its working directory.
        url: Address of a server that runs already; empty for a program.
        headers: HTTP headers sent to it.
        confirm: Tools a person is asked about before each call; None for all.
        tools: Tools that are offered; None for all.
        timeout_s: Longest wait in seconds for its start, and for each call.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] | None = None
    confirm: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    timeout_s: float = _TIMEOUT_S


class MCPConfig(ModuleConfig):
    """Keys under ``mcp.``."""

    def _configure(self) -> None:
        self._set_name("mcp")
        base = self.src.app_base_path
        found = self._get_dict("servers").items()
        self.servers = tuple(_server(name, value, base) for name, value in found)


class _Fields:
    """The fields of one server; errors name their place."""

    def __init__(self, name: str, value: object) -> None:
        self._where = f"mcp.servers.{name}"
        if not isinstance(value, Mapping):
            raise ConfigError(self._where, "must be an object with `command` or `url`.")
        self._value = value
        is_program, is_address = "command" in value, "url" in value
        if is_program == is_address:
            raise ConfigError(self._where, "needs either `command` or `url`.")
        known = (*(_STDIO if is_program else _HTTP), *_COMMON)
        for key in value:
            if key not in known:
                close = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}."
                raise ConfigError(self._where, f"has no field {key}; {hint}")

    def fail(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._where}.{key}", f"must be {expected}.")

    def text(self, key: str) -> str:
        value = self._value.get(key, "")
        if not isinstance(value, str) or "\0" in value or (key in self._value and not value):
            raise self.fail(key, "a text")
        return value

    def folder(self, key: str, base: Path) -> Path:
        try:
            return Path(absolute_path(self.text(key), base))
        except ValueError as error:
            raise self.fail(key, str(error)) from None

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail(key, "a list of texts")
        return tuple(value)

    def named_texts(self, key: str) -> dict[str, str]:
        value = self._value.get(key, {})
        if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
            raise self.fail(key, "an object of texts")
        return dict(value)

    def confirm(self) -> frozenset[str] | None:
        value = self._value.get("confirm", "always")
        if value == "always":
            return None
        if value == "never":
            return frozenset()
        if not isinstance(value, list):
            raise self.fail("confirm", "always, never, or a list of names of tools")
        return frozenset(self.texts("confirm"))

    def seconds(self) -> float:
        value: Any = self._value.get("timeout_s", _TIMEOUT_S)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
            raise self.fail("timeout_s", "a number of seconds above 0")
        return float(value)

    def has(self, key: str) -> bool:
        return key in self._value


def _server(name: str, value: object, base: Path) -> ServerConfig:
    if not name.strip() or not name.isascii():
        raise ConfigError("mcp.servers", f"{name!r} is no name for a server; use plain letters.")
    fields = _Fields(name, value)
    url, headers = fields.text("url"), fields.named_texts("headers")
    if url and not url.startswith(("http://", "https://")):
        raise fields.fail("url", "an address that begins with http:// or https://")
    for header, text in headers.items():
        if header.lower() not in _PLAIN_HEADERS:
            register_secret(text)
            register_secret(text.rpartition(" ")[2])  # without its scheme: `Bearer ...`
    return ServerConfig(
        name=name,
        command=fields.text("command"),
        args=fields.texts("args"),
        env=fields.named_texts("env"),
        cwd=fields.folder("cwd", base),
        url=url,
        headers=headers,
        confirm=fields.confirm(),
        tools=frozenset(fields.texts("tools")) if fields.has("tools") else None,
        timeout_s=fields.seconds(),
    )
