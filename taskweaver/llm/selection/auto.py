"""Choice of a model: the configured one, else a server on this machine, else the offline analyst.

Loopback is asked, and what OLLAMA_HOST names, for the list of models alone; nothing is stored. Keys
of the environment go to hosts that the user chose.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from taskweaver.config.config_mgt import Source
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import kept_key
from taskweaver.llm.dialects.switch import DialectName, dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.stream import mapping_in, mappings_in
from taskweaver.llm.providers.presets import LOCAL_PORTS, PRESETS, Preset
from taskweaver.llm.selection.config import LLMServiceConfig
from taskweaver.llm.transport.endpoint import Endpoint, is_loopback, split_url
from taskweaver.utils.system.installation import state_folder

PROBE_S = 0.3
"""Longest time in seconds spent on looking for local servers, all together."""

_MAX_LIST_BYTES = 1 << 20
_MOST_MODELS, _LONGEST_NAME, _MOST_BYTES = 200, 200, 1 << 50
_NOT_FOR_CHAT = re.compile(r"embed|rerank|\bbge\b|whisper|\btts\b|\bclip\b", re.IGNORECASE)
_OFF = ("", "0", "false", "no", "off")
_AZURE = tuple(
    f".{service}.{cloud}"
    for service in ("openai", "cognitiveservices", "services.ai")
    for cloud in ("azure.com", "azure.us", "azure.cn")
)
_OLLAMA_PORT = 11434
_OWNERS = {
    "library": "ollama", "llamacpp": "llamacpp", "organization_owner": "lmstudio", "vllm": "vllm",
}  # fmt: skip
"""Owners that servers state of their models, whatever port they listen at."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which model is asked, and why.

    Attributes:
        endpoint: Where it is; None for the built-in offline model.
        reason: Why it was chosen, in a few words.
        dialect: Protocol spoken there.
    """

    endpoint: Endpoint | None
    reason: str
    dialect: DialectName = "chat"


def choose(config: LLMServiceConfig, ports: Mapping[int, str] | None = None) -> Choice:
    """Choose for ``llm.api_type = auto``: a configured key or address, a local server, offline.

    Args:
        config: The configuration.
        ports: Loopback ports to ask, with their servers' names; `LOCAL_PORTS` by default.

    Raises:
        ModelError: Of kind ``configuration``, if the configured model cannot be used.
    """
    env = os.environ
    if config.api_key or config.api_base or env.get("OPENAI_API_KEY", "").strip():
        return choose_preset(config, "openai")
    if not may_look(config):
        return Choice(
            None, "no key, not looking for a local server; `taskweaver setup` connects one"
        )
    found = find_local(config.model, LOCAL_PORTS if ports is None else ports)
    return found or Choice(None, "no key, no local server found; `taskweaver setup` connects one")


def may_look(config: LLMServiceConfig) -> bool:
    """Return whether ports may be asked for local servers."""
    is_off = os.environ.get("TASKWEAVER_NO_DISCOVERY", "").lower() not in _OFF
    return config.auto_detect and not is_off


def choose_preset(config: LLMServiceConfig, name: str) -> Choice:
    """Choose a preset's endpoint, overridden by the configuration.

    Raises:
        ModelError: Of kind ``configuration``, if a key, address or model is missing.
    """
    if name in ("azure", "azure_ad"):
        return _choose_azure(config, is_key_used=name == "azure")
    preset = PRESETS.get(name)
    if preset is None:
        known = ", ".join(("auto", "azure", "azure_ad", "offline", *PRESETS))
        raise ModelError("configuration", f"llm.api_type {name!r} is none of {known}.")
    is_openai = name == "openai"
    from_env = os.environ.get("OPENAI_BASE_URL", "").strip() if is_openai else ""
    base = config.api_base or from_env or preset.api_base
    if name == "ollama" and not split_url(base).path.strip("/"):
        base = f"{base.rstrip('/')}/v1"  # people know the address of its own protocol
    if preset.dialect == "anthropic" and not base.rstrip("/").endswith("/v1"):
        base = f"{base.rstrip('/')}/v1"  # Anthropic's own client adds it
    split_url(base)
    key, reason = _key(config, preset, base, is_own=preset.owns(base) or base == from_env)
    model = config.model or (os.environ.get("OPENAI_MODEL", "").strip() if is_openai else "")
    is_own = base == preset.api_base
    model = model or (preset.model if is_own else "") or _loaded_model(base, key, preset.dialect)
    return Choice(Endpoint(base, model, key), reason, preset.dialect)


def _choose_azure(config: LLMServiceConfig, *, is_key_used: bool) -> Choice:
    settings = {"llm.api_base": config.api_base}
    if is_key_used:
        settings["llm.api_key"] = config.api_key
    settings["llm.model"] = config.model
    missing = [name for name, value in settings.items() if not value]
    if missing:
        detail = f"Azure needs {' and '.join(missing)}."
        raise ModelError("configuration", detail, hint="llm.model is the deployment's name.")
    split_url(config.api_base)
    source = config.key_source if is_key_used else None
    require_own_host(config, config.api_base, source, is_own=is_azure(config.api_base))
    if is_key_used:
        endpoint = Endpoint(config.api_base, config.model, config.api_key, config.api_version)
        return Choice(endpoint, "Azure, as configured")
    token = config.azure_sign_in.token_provider()
    endpoint = Endpoint(config.api_base, config.model, "", config.api_version, token)
    return Choice(endpoint, f"Azure AD, {config.azure_sign_in.mode}")


def _key(config: LLMServiceConfig, preset: Preset, base: str, *, is_own: bool) -> tuple[str, str]:
    if config.api_key:
        require_own_host(config, base, config.key_source, is_own=is_own)
        return config.api_key, "key from llm.api_key"
    from_env = os.environ.get(preset.key_variable, "").strip() if preset.key_variable else ""
    kept = _kept(preset, base)
    if kept and not (from_env and preset.owns(base)):
        return kept, "key from keys.json"
    if from_env:
        require_own_host(config, base, "env", is_own=is_own)
        return from_env, f"key from {preset.key_variable}"
    if preset.needs_key and not is_loopback(base):
        hint = f"`taskweaver setup` takes one, or set {preset.key_variable} or LLM_API_KEY."
        raise ModelError("configuration", f"{base} needs a key.", hint=hint)
    return "", "no key needed"


def _kept(preset: Preset, base: str) -> str:
    """Return the key that the user added for a host; a model on this machine may do without."""
    try:
        return kept_key(base)
    except ConfigError as error:
        if preset.needs_key and not is_loopback(base):
            raise ModelError("configuration", str(error)) from None
        return ""


def _loaded_model(base: str, key: str, dialect: DialectName) -> str:
    models = list_models(base, key, timeout_s=3.0, dialect=dialect)
    if not models:
        detail = f"llm.model is not set, and {base} names no model."
        raise ModelError("configuration", detail, hint="Start the server, or set llm.model.")
    return models[0]


def find_local(wanted: str, ports: Mapping[int, str]) -> Choice | None:
    """Return the first server of this machine that has a model, with that model.

    Args:
        wanted: Name of the model to use; empty takes the first that can chat.
        ports: The ports, with who listens there.
    """
    servers = [server for server in local_servers(ports) if is_loopback(server.address)]
    count = sum(len(server.models) for server in servers)
    more = f"; {count} models are here, `taskweaver setup` chooses" if count > 1 else ""
    for server in servers:
        if not wanted or wanted in server.models:
            endpoint = Endpoint(server.address, wanted or next(iter(server.models)))
            preset = PRESETS.get(server.provider)
            reason = f"{preset.label if preset else server.provider} found on this machine"
            return Choice(endpoint, reason + more, preset.dialect if preset else "chat")
    return None


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server of models on this machine, or the Ollama that OLLAMA_HOST names.

    Attributes:
        provider: Its preset; the name of its port where it does not state whose it is.
        address: Its address, up to ``/v1``.
        models: The models that can chat, with their sizes in bytes; 0 where it states none.
    """

    provider: str
    address: str
    models: Mapping[str, int]


def local_servers(
    ports: Mapping[int, str], *, timeout_s: float = PROBE_S, has_sizes: bool = False
) -> list[LocalServer]:
    """Ask all ports of this machine, and OLLAMA_HOST, at once for their models.

    Args:
        ports: Loopback ports, with who listens there.
        timeout_s: Longest time in seconds for all of them together.
        has_sizes: Whether Ollama is asked for the sizes of its models.
    """
    by_label = {preset.label: name for name, preset in PRESETS.items()}
    places = {f"http://127.0.0.1:{port}/v1": by_label.get(at, at) for port, at in ports.items()}
    host = ollama_host()
    places = ({host: "ollama"} if host else {}) | places
    found: dict[str, LocalServer] = {}

    def ask(address: str, name: str) -> None:
        entries = _entries(address, "", timeout_s, "chat")
        named = (_OWNERS.get(str(entry.get("owned_by"))) for entry in entries.values())
        provider = next(filter(None, named), name)
        sizes = {model: _size(entry.get("meta")) for model, entry in entries.items()}
        if has_sizes and provider == "ollama" and entries:
            listed = _get(address.removesuffix("/v1"), "/api/tags", {}, timeout_s)
            sizes |= {m: _size(entry) for m, entry in _named(listed, "models", "name").items()}
        models = {model: sizes[model] for model in entries}
        if models:
            found[address] = LocalServer(provider, address, models)

    asking = [threading.Thread(target=ask, args=place, daemon=True) for place in places.items()]
    until = monotonic() + timeout_s
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(max(until - monotonic(), 0.0))
    return [found[address] for address in places if address in found]


def ollama_host() -> str:
    """Return the address that OLLAMA_HOST names, up to ``/v1``; empty if it names none."""
    text = os.environ.get("OLLAMA_HOST", "").strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "127.0.0.1", parts.port or _OLLAMA_PORT
    except ValueError:
        return ""
    if not text or parts.scheme not in ("http", "https"):
        return ""
    host = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}/v1"


def list_models(
    base: str, key: str, *, timeout_s: float, dialect: DialectName = "chat"
) -> list[str]:
    """Return the chat models an endpoint lists; none when it does not answer like one.

    Goes through no proxy and follows no redirect.
    """
    return list(_entries(base, key, timeout_s, dialect))


def _entries(
    base: str, key: str, timeout_s: float, dialect: DialectName
) -> dict[str, Mapping[str, Any]]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= dialect_named(dialect).headers(key)
    return _named(_get(base, "/models", headers, timeout_s), "data", "id")


def _get(base: str, path: str, headers: Mapping[str, str], timeout_s: float) -> Any:
    """Return the JSON that an address answers; None for anything else, or not in time."""
    import http.client

    parts = split_url(base)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    shown = {name: text for name, text in headers.items() if text} | {"Accept": "application/json"}
    # The timeout of a socket is for each piece alone: a server that drips would keep us for ever.
    watch = threading.Timer(timeout_s, lambda: _cut(connected))
    watch.daemon = True
    try:
        connection.connect()
        connected = connection.sock
        watch.start()
        connection.request("GET", f"{parts.path.rstrip('/')}{path}", headers=shown)
        response = connection.getresponse()
        return json.loads(response.read(_MAX_LIST_BYTES)) if response.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        watch.cancel()
        connection.close()


def _cut(connected: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _named(body: Any, field: str, name: str) -> dict[str, Mapping[str, Any]]:
    entries = mappings_in(mapping_in(body).get(field))
    named = {_name(entry.get(name)): entry for entry in entries}
    named.pop("", None)
    return dict(islice(named.items(), _MOST_MODELS))


def _name(text: Any) -> str:
    """Return a name of a model for a chat, of one line; empty for anything else."""
    is_name = isinstance(text, str) and text.isprintable() and len(text) <= _LONGEST_NAME
    return text if is_name and not _NOT_FOR_CHAT.search(text) else ""


def _size(entry: Any) -> int:
    size = mapping_in(entry).get("size")
    if not isinstance(size, int) or isinstance(size, bool):
        return 0
    return size if 0 < size <= _MOST_BYTES else 0


def require_own_host(
    config: LLMServiceConfig, base: str, source: Source | None, *, is_own: bool
) -> None:
    """Refuse to send a key to a host that it is not for.

    The user's file goes with itself alone: its key to its address. A key of the environment goes
    where the environment or the program says, or a project that is trusted. Keys that were entered
    for a host are not asked about: they go to no other.

    Args:
        config: The model's configuration.
        base: The address the key is for.
        source: Layer that sets the key; None for a sign-in.
        is_own: Whether the address belongs to the provider whose key it is, or is named with it.

    Raises:
        ModelError: Of kind ``configuration``, if the key is not sent there.
    """
    at = config.address_source
    if is_own or at is None or at == source:
        return
    is_users = at == "user" or source == "user"
    if is_users and source is not None:
        place, hint = "another file", "`taskweaver setup` takes its key"
    elif at == "json" and source in ("env", None) and not config.src.trusts_addresses:
        place, hint = "the project", "Trust the project (taskweaver trust)"
    else:
        return
    host = urlsplit(base).hostname
    detail = f"a key or sign-in of yours is not sent to {host}, which {place} names."
    hint = f"{hint}, or set LLM_API_BASE."
    raise ModelError("configuration", detail, hint=hint)


def is_azure(base: str) -> bool:
    """Return whether an address is one of Azure's own, by https."""
    parts = urlsplit(base.strip())
    return parts.scheme == "https" and (parts.hostname or "").endswith(_AZURE)


def is_first_call(base: str) -> bool:
    """Return whether no model at a host was called before, and note that it is now.

    This machine is known. Without a home folder every host is new to each process.
    """
    parts = urlsplit(base.strip())
    folder = state_folder()
    if is_loopback(base) or not parts.hostname:
        return False
    if folder is None:
        return True
    name = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    try:
        (folder / "hosts").mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(folder / "hosts" / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:  # it cannot be noted: it is said again next time
        return True
    return True
