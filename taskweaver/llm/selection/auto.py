"""Choice of a model: the configured one, else a server on this machine, else the offline analyst.

Only loopback is asked, only for the list of models, and the result is never stored.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from taskweaver.llm.dialects.switch import DialectName, dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.providers.presets import LOCAL_PORTS, PRESETS, Preset
from taskweaver.llm.selection.config import LLMServiceConfig
from taskweaver.llm.selection.key_hosts import is_azure, require_own_host
from taskweaver.llm.transport.endpoint import Endpoint, is_loopback, split_url

PROBE_S = 0.3
"""Longest time in seconds spent on looking for local servers, all together."""

_MAX_LIST_BYTES = 1 << 20
_NOT_FOR_CHAT = re.compile(r"embed|rerank|\bbge\b|whisper|\btts\b|\bclip\b", re.IGNORECASE)
_OFF = ("", "0", "false", "no", "off")


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
    if not config.auto_detect or env.get("TASKWEAVER_NO_DISCOVERY", "").lower() not in _OFF:
        return Choice(None, "no key, not looking for a local server")
    found = find_local(config.model, LOCAL_PORTS if ports is None else ports)
    return found or Choice(None, "no key, no local server found")


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
    key, reason = _key(config, preset, base)
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
    if not is_key_used or config.key_source == "env":
        require_own_host(config, config.api_base, is_own=is_azure(config.api_base))
    if is_key_used:
        endpoint = Endpoint(config.api_base, config.model, config.api_key, config.api_version)
        return Choice(endpoint, "Azure, as configured")
    token = config.azure_sign_in.token_provider()
    endpoint = Endpoint(config.api_base, config.model, "", config.api_version, token)
    return Choice(endpoint, f"Azure AD, {config.azure_sign_in.mode}")


def _key(config: LLMServiceConfig, preset: Preset, base: str) -> tuple[str, str]:
    if config.api_key:
        if config.key_source == "env":
            require_own_host(config, base, is_own=preset.owns(base))
        return config.api_key, "key from llm.api_key"
    from_env = os.environ.get(preset.key_variable, "").strip() if preset.key_variable else ""
    if from_env:
        require_own_host(config, base, is_own=preset.owns(base))
        return from_env, f"key from {preset.key_variable}"
    if preset.needs_key and not is_loopback(base):
        hint = f"Set llm.api_key, LLM_API_KEY or {preset.key_variable}."
        raise ModelError("configuration", f"{base} needs a key.", hint=hint)
    return "", "no key needed"


def _loaded_model(base: str, key: str, dialect: DialectName) -> str:
    models = list_models(base, key, timeout_s=3.0, dialect=dialect)
    if not models:
        detail = f"llm.model is not set, and {base} names no model."
        raise ModelError("configuration", detail, hint="Start the server, or set llm.model.")
    return models[0]


def find_local(wanted: str, ports: Mapping[int, str]) -> Choice | None:
    """Ask loopback ports, all at once, for a model; the first of them that has one wins.

    Args:
        wanted: Name of the model to use; empty takes the first that can chat.
        ports: The ports, with who listens there.
    """
    found: dict[int, list[str]] = {}

    def ask(port: int) -> None:
        found[port] = list_models(f"http://127.0.0.1:{port}/v1", "", timeout_s=PROBE_S)

    asking = [threading.Thread(target=ask, args=(port,), daemon=True) for port in ports]
    until = monotonic() + PROBE_S
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(max(until - monotonic(), 0.0))
    for port, label in ports.items():
        models = found.get(port, [])
        if models and (not wanted or wanted in models):
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", wanted or models[0])
            dialect: DialectName = "ollama" if label == "Ollama" else "chat"
            return Choice(endpoint, f"{label} found on this machine", dialect)
    return None


def list_models(
    base: str, key: str, *, timeout_s: float, dialect: DialectName = "chat"
) -> list[str]:
    """Return the chat models an endpoint lists; none when it does not answer like one.

    Goes through no proxy and follows no redirect.
    """
    import http.client

    parts = split_url(base)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    headers |= dialect_named(dialect).headers(key)
    shown = {name: text for name, text in headers.items() if text}
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/models", headers=shown)
        response = connection.getresponse()
        body = response.read(_MAX_LIST_BYTES) if response.status == 200 else b""
        return _chat_models(json.loads(body or b"null"))
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return []
    finally:
        connection.close()


def _chat_models(body: Any) -> list[str]:
    entries = body.get("data") if isinstance(body, Mapping) else None
    names = [entry.get("id") for entry in entries or () if isinstance(entry, Mapping)]
    texts = [name for name in names if isinstance(name, str) and name]
    return [name for name in texts if not _NOT_FOR_CHAT.search(name)]
