"""Values of a project's configuration file that run, send or loosen something."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from taskweaver.config.coercion import coerce
from taskweaver.config.config_mgt import AppConfigSource, env_name
from taskweaver.config.keys.key import Key
from taskweaver.trust.content import TrustEffect, digest_of_file, is_inside
from taskweaver.trust.keys import Risk, known_key, risk_of

_PLAIN_PROVIDERS = frozenset(
    "auto none offline function recorded ollama lmstudio llamacpp vllm jan duckduckgo".split()
)
"""Values of provider keys that need no consent: local models, and the default web search."""
_OPENAI = "https://api.openai.com/v1"
_USUAL = {("llm.api_type", "openai"), ("llm.api_base", _OPENAI), ("llm.openai.api_base", _OPENAI)}
_WEB_ROLES = frozenset({"web_search", "web_explorer"})


def risky_values(src: AppConfigSource) -> Iterator[TrustEffect]:
    """Yield the values of the configuration file that need consent, with the files they name.

    A value that cannot be read as its type has no effect: opening the project is an error. Neither
    has one that the environment or the program overrides, nor a default.
    """
    base = src.app_base_path
    for name, value in src.json_file_store.items():
        is_in_environment = bool(os.environ.get(env_name(name), "").strip())
        if is_in_environment or src.in_memory_store.get(name) is not None:
            continue
        if _is_usual(src, name, value):
            continue
        risk = risk_of(name)
        if risk in ("programs", "models"):
            for entry, part in value.items() if isinstance(value, Mapping) else ():
                fields = part if isinstance(part, Mapping) else {}
                if risk == "programs" or any(
                    _is_risky_model(k, v, base) for k, v in fields.items()
                ):
                    yield _shown(f"{name}.{entry}", part, _files_of_program(fields, base), name)
        elif risk != "path" and _is_risky(name, value, risk, base):
            files = digest_of_file(Path(src.get_path(name))) if risk == "file" else ""
            yield _shown(name, value, files, name)


def _shown(place: str, value: Any, files: Any, name: str) -> TrustEffect:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return TrustEffect(f"{place}: {text}", [value, files], (name,))


def _is_usual(src: AppConfigSource, name: str, value: Any) -> bool:
    """Return whether a value names the endpoint that a user's own key leads to without it."""
    chosen = src.lookup("llm.api_type")
    is_default = chosen is None or chosen.value in ("auto", "openai")
    is_usual = (name, str(value).rstrip("/")) in _USUAL
    return is_default and is_usual and not os.environ.get("OPENAI_BASE_URL")


def _is_risky_model(name: str, value: Any, base: Path) -> bool:
    """Return whether a field of a further model needs consent; others than ``llm.`` do nothing."""
    return name.startswith("llm.") and _is_risky(name, value, risk_of(name), base)


def _is_risky(name: str, value: Any, risk: Risk, base: Path) -> bool:
    """Return whether a value needs consent: it is read, is no default, and loosens something."""
    key = known_key(name)
    if key is None or value is None or risk == "harmless":
        return False
    try:
        read = coerce(key, value, base)
    except ValueError:
        return False
    if read == key.default:
        return False
    loosens = _LOOSENS.get(risk)
    return loosens(key, read, base) if loosens else bool(read)


def _is_raised(key: Key, value: Any) -> bool:
    default = key.default
    if default is None and key.name == "execution.memory_limit_mb":
        default = psutil.virtual_memory().total // 2 >> 20
    if value == 0 and key.name.startswith("session."):
        return False  # nothing is kept
    return bool(default) and not 0 < value <= default


def _is_other_place(_key: Key, value: str, _base: Path) -> bool:
    # What holds more than a name is a path below a folder that is not known here.
    return bool(value) and (value != Path(value).name or "\0" in value)


_LOOSENS: dict[Risk, Callable[[Key, Any, Path], bool]] = {
    "sandbox": lambda _key, value, _: bool(value) and value != "bwrap",
    "limit": lambda key, value, _: _is_raised(key, value),
    "policy": lambda key, value, _: not {*value}.issuperset(key.default),
    "provider": lambda _key, value, _: value not in _PLAIN_PROVIDERS,
    "roles": lambda _key, value, _: not _WEB_ROLES.isdisjoint(value),
    "sent": lambda _key, value, _: value in (True, "otlp"),
    "path": lambda _key, value, base: bool(value) and not is_inside(Path(value), base),
    "name": _is_other_place,
    "unknown": lambda _key, _value, _: True,
}
"""Whether a value that is no default loosens something; of other risks each that is not empty."""


def _files_of_program(fields: Mapping[str, Any], base: Path) -> dict[str, str]:
    """Return the hashes of files of the project that a command line names."""
    args = fields.get("args", [])
    words = [fields.get("command", ""), *(args if isinstance(args, list) else [])]
    folder = base / str(fields.get("cwd", "")).replace("\0", "")
    found = {}
    for word in filter(None, map(str, words)):
        if "\0" in word:
            continue
        path = Path(os.path.realpath(folder / word))
        if is_inside(path, base) and os.path.isfile(path):  # noqa: PTH113 - a long word is no error
            found[word] = digest_of_file(path)
    return found
