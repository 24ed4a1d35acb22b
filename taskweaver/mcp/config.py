"""The key ``mcp.servers``: the servers and their permissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from taskweaver.config.errors import ConfigError
from taskweaver.config.module_config import ModuleConfig
from taskweaver.utils.files import absolute_path
from taskweaver.utils.redact import register_secret
from taskweaver.utils.text import did_you_mean

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
        self.servers = tuple(server_config(name, value, base) for name, value in found)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_named_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())


def _is_time(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < cast(float, value) < 1e6


_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "command": (_is_text, "a text"),
    "args": (_are_texts, "a list of texts"),
    "env": (_are_named_texts, "an object of texts"),
    "cwd": (_is_text, "a text"),
    "url": (
        lambda value: isinstance(value, str) and value.startswith(("http://", "https://")),
        "an address that begins with http:// or https://",
    ),
    "headers": (_are_named_texts, "an object of texts"),
    "confirm": (
        lambda value: value in ("always", "never") or _are_texts(value),
        "always, never, or a list of names of tools",
    ),
    "tools": (_are_texts, "a list of texts"),
    "timeout_s": (_is_time, "a number of seconds above 0"),
}


def _checked(name: str, value: object) -> Mapping[str, Any]:
    """Return the fields of a server, all of the right form.

    Raises:
        ConfigError: If one is not; names its place.
    """
    where = f"mcp.servers.{name}"
    if not isinstance(value, Mapping):
        raise ConfigError(where, "must be an object with `command` or `url`.")
    if ("command" in value) == ("url" in value):
        raise ConfigError(where, "needs either `command` or `url`.")
    known = (*(_STDIO if "command" in value else _HTTP), *_COMMON)
    for key, item in value.items():
        if key not in known:
            hint = did_you_mean(str(key), known, f"there are {', '.join(known)}.")
            raise ConfigError(where, f"has no field {key}; {hint}")
        has_form, form = _FORMS[key]
        if not has_form(item):
            raise ConfigError(f"{where}.{key}", f"must be {form}.")
    return value


def server_config(name: str, value: object, base: Path) -> ServerConfig:
    """Return the configuration of a server, whose paths are relative to a folder.

    Raises:
        ConfigError: If it is not of the right form; names the place.
    """
    if not name.strip() or not name.isascii():
        raise ConfigError("mcp.servers", f"{name!r} is no name for a server; use plain letters.")
    fields = dict(_checked(name, value))
    for header, text in fields.get("headers", {}).items():
        if header.lower() not in _PLAIN_HEADERS:
            register_secret(text)
            register_secret(text.rpartition(" ")[2])  # without its scheme: `Bearer ...`
    try:
        fields["cwd"] = Path(absolute_path(fields.get("cwd", ""), base))
    except ValueError as error:
        raise ConfigError(f"mcp.servers.{name}.cwd", f"must be {error}.") from None
    asked = fields.pop("confirm", "always")
    fields["confirm"] = None if asked == "always" else frozenset(() if asked == "never" else asked)
    if "tools" in fields:
        fields["tools"] = frozenset(fields["tools"])
    fields["args"] = tuple(fields.get("args", ()))
    return ServerConfig(name, **fields)
