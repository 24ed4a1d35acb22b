"""The effects of the values in a project's configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from taskweaver.config.coercion import coerce
from taskweaver.config.config_mgt import AppConfigSource, env_name
from taskweaver.config.keys.key import Key
from taskweaver.trust.content import digest_of_file, is_inside
from taskweaver.trust.finding import Finding, finding
from taskweaver.trust.keys import Risk, known_key, risk_of
from taskweaver.utils.text import fill

_LOCAL_MODELS = frozenset(
    "auto none offline function recorded ollama lmstudio llamacpp vllm".split()
)
_OPENAI = "https://api.openai.com/v1"
_USUAL = {("llm.api_type", "openai"), ("llm.api_base", _OPENAI), ("llm.openai.api_base", _OPENAI)}
_SIGN_IN = tuple(
    f"llm.aad_{name}" for name in ("tenant_id", "client_id", "api_resource", "api_scope")
)
_WEB_ROLES = frozenset({"web_search", "web_explorer"})


def findings_in_values(src: AppConfigSource) -> Iterator[Finding]:
    """Yield the effects of values in the configuration file that need consent.

    A value that cannot be read as its type has none: opening the project is an error. Neither has
    one that the environment or the program overrides, nor a default.
    """
    for name, value in src.json_file_store.items():
        if _is_overridden(src, name) or _is_usual(src, name, value):
            continue
        risk = risk_of(name)
        if risk == "programs":
            yield from _programs(name, value, src.app_base_path)
        elif risk == "models":
            yield from _models(name, value, src.app_base_path)
        elif risk not in ("harmless", "path"):
            yield from _value(name, value, risk, src.app_base_path)


def _is_overridden(src: AppConfigSource, name: str) -> bool:
    """Return whether the environment or the program sets a key under this very name."""
    is_in_environment = bool(os.environ.get(env_name(name), "").strip())
    return is_in_environment or src.in_memory_store.get(name) is not None


def _is_usual(src: AppConfigSource, name: str, value: Any) -> bool:
    """Return whether a value names the endpoint that a user's own key leads to without it."""
    chosen = src.lookup("llm.api_type")
    is_default = chosen is None or chosen.value in ("auto", "openai")
    is_usual = (name, str(value).rstrip("/")) in _USUAL
    return is_default and is_usual and not os.environ.get("OPENAI_BASE_URL")


def _value(name: str, value: Any, risk: Risk, base: Path) -> Iterator[Finding]:
    key = known_key(name)
    if key is None or value is None:
        return
    try:
        read = coerce(key, value, base)
    except ValueError:
        return
    if read == key.default:
        return
    sentence = _if_set(_IF_SET.get(key.name, _IF_SET.get(risk, "")), name, read)
    if risk in _SENTENCES:
        sentence = _SENTENCES[risk](name, key, read, base)
    if sentence:
        content = [read, digest_of_file(Path(read))] if risk == "file" else read
        yield finding("value", name, sentence, content, name)


def _programs(name: str, servers: Any, base: Path) -> Iterator[Finding]:
    if not isinstance(servers, Mapping):
        return
    for server, value in servers.items():
        fields = value if isinstance(value, Mapping) else {}
        asks = "" if fields.get("confirm", "always") == "always" else "; its tools run unasked"
        if "url" in fields:
            sentence = f"Connect to the MCP server {server} at {fields['url']}{asks}."
        else:
            args = fields.get("args", [])
            words = [fields.get("command", ""), *(args if isinstance(args, list) else [args])]
            line = " ".join(map(str, words))
            sentence = f"Run the program `{line}` with your rights (MCP server {server}){asks}."
        content = [value, _files_of_program(fields, base)]
        yield finding("value", f"{name}.{server}", sentence, content, name)


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


def _models(name: str, models: Any, base: Path) -> Iterator[Finding]:
    """Yield a finding for each further model of which a value needs consent."""
    if not isinstance(models, Mapping):
        return
    for alias, values in models.items():
        fields = values if isinstance(values, Mapping) else {}
        found = [
            item
            for key, value in fields.items()
            if key.startswith("llm.") and risk_of(key) != "harmless"  # others have no effect here
            for item in _value(key, value, risk_of(key), base)
        ]
        if found:
            effects = " ".join(item.sentence for item in found)
            sentence = f"Use the model {alias}: {effects}"
            yield finding("value", f"{name}.{alias}", sentence, values, name)


_Sentence = Callable[[str, Key, Any, Path], str]


def _if_set(text: str, name: str, value: Any) -> str:
    """Return a sentence about a value; empty if it holds nothing."""
    shown = _list(value) if isinstance(value, list) else str(value)
    return fill(text, VALUE=shown, NAME=name) if value else ""


def _sandbox(name: str, key: Key, value: Any, _: Path) -> str:
    if key.name != "execution.sandbox":
        return _if_set(_IF_SET[key.name], name, value)
    if value == "none":
        return f"Run code without a sandbox, with your rights ({name})."
    return f"Use the weaker sandbox, Landlock ({name})." if value == "landlock" else ""


def _limit(name: str, key: Key, value: Any, _: Path) -> str:
    default = key.default
    if default is None and key.name == "execution.memory_limit_mb":
        default = psutil.virtual_memory().total // 2 >> 20
    if not default or 0 < value <= default:
        return ""
    if value == 0 and key.name.startswith("session."):
        return ""  # nothing is kept
    effect = f"from {default:g} to {value:g}" if value else "to none"
    return f"Raise the limit {name} {effect}."


def _policy(name: str, key: Key, value: Any, _: Path) -> str:
    missing = [item for item in key.default if item not in value]
    return f"Allow {_list(missing)} in code, where a policy applies ({name})." if missing else ""


def _provider(name: str, _key: Key, value: Any, _: Path) -> str:
    if value in _LOCAL_MODELS or value == "duckduckgo":
        return ""
    return f"Send questions and data to {value} ({name})."


def _roles(name: str, _key: Key, value: Any, _: Path) -> str:
    visiting = [role for role in value if role in _WEB_ROLES]
    return f"Let {_list(visiting)} visit web pages ({name})." if visiting else ""


def _sent(name: str, key: Key, value: Any, _: Path) -> str:
    if key.name == "tracing.contents":
        return _if_set(_IF_SET[key.name], name, value)
    return f"Send traces to a collector ({name})." if value in (True, "otlp") else ""


def _name(name: str, _key: Key, value: Any, _: Path) -> str:
    # What holds more than a name is a path below a folder that is not known here.
    is_plain = not value or (value == Path(value).name and "\0" not in value)
    return "" if is_plain else f"Write to another place: {value} ({name})."


def _path(name: str, _key: Key, value: Any, base: Path) -> str:
    is_out = bool(value) and not is_inside(Path(value), base)
    return f"Use {value}, outside of the folder ({name})." if is_out else ""


_IF_SET = {
    "address": "Send questions, data or keys to {VALUE} ({NAME}).",
    **dict.fromkeys(_SIGN_IN, "Sign in with {VALUE} ({NAME})."),
    "scheduler": "Run attempts on the machines of {VALUE}, which answers with code ({NAME}).",
    "browser": "Run the program {VALUE} as the browser ({NAME}).",
    "account": "Use the account of a key that stands in the project ({NAME}).",
    "file": "Use data, code and models that {VALUE} names ({NAME}).",
    "execution.network": "Give code in the sandbox the network ({NAME}).",
    "execution.allowed_hosts": "Let code in the sandbox reach {VALUE} ({NAME}).",
    "execution.writable_paths": "Let code in the sandbox write to {VALUE} ({NAME}).",
    "execution.read_only_paths": "Let code in the sandbox read {VALUE} ({NAME}).",
    "execution.pass_environment": "Give commands of a search the variables {VALUE} ({NAME}).",
    "tracing.contents": "Put prompts, code and results into traces ({NAME}).",
}
"""Effects of values that are not empty, by risk or key."""
_SENTENCES: dict[Risk, _Sentence] = {
    "code": lambda name, _key, value, _: (
        f"Run code of the project before each cell ({name})." if value.strip() else ""
    ),
    "sandbox": _sandbox,
    "limit": _limit,
    "policy": _policy,
    "provider": _provider,
    "roles": _roles,
    "sent": _sent,
    "name": _name,
    "path": _path,
    "unknown": lambda name, _key, _value, _: f"Set {name}, whose effect is not classified.",
}


def _list(items: list[str]) -> str:
    return ", ".join(items)


def reset(src: AppConfigSource, withheld: Finding) -> None:
    """Remove a value from the configuration file's layer, so that the default counts.

    A server or model of a table goes alone. With a model's address goes all that belongs to it.
    """
    store = src.json_file_store
    (key,) = withheld.keys
    entry = withheld.subject.removeprefix(f"{key}.")
    table = store.get(key)
    if entry != withheld.subject and isinstance(table, Mapping):
        store[key] = {name: value for name, value in table.items() if name != entry}
        if key == "ext_llms.llm_configs":
            for name in list(store):
                if name.endswith(("llm_alias", "vlm_alias")) and store[name] == entry:
                    del store[name]
        return
    store.pop(key, None)
    if key.startswith("llm."):
        for name in list(store):
            if _is_of_endpoint(name):
                del store[name]


_ENDPOINT = frozenset(
    "llm.api_type llm.api_base llm.api_key llm.model llm.api_version llm.embedding_api_type"
    " llm.embedding_api_base llm.embedding_model llm.recorded.api_type".split()
)


def _is_of_endpoint(name: str) -> bool:
    key = known_key(name)
    return key is not None and (key.name in _ENDPOINT or key.name.startswith("llm.aad_"))
