"""Checks a whole configuration at start: names that do not exist, values of the wrong type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from taskweaver.config.config_mgt import UNSET, AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import BY_NAME, find
from taskweaver.config.keys.roles import EXT_ROLES, INTERPRETERS
from taskweaver.config.replaced import ALIASES, REMOVED, VALUES, provider_key, refusal, removed
from taskweaver.utils.text import did_you_mean

_PACKAGED = ("planner", "code_interpreter", *INTERPRETERS, "code_generator", *EXT_ROLES)
_EXT_LLMS = "ext_llms.llm_configs"


def check(src: AppConfigSource, extra_prefixes: Iterable[str] = ()) -> list[str]:
    """Check every value that is set. Keys below `extra_prefixes` belong to further roles.

    Returns:
        One sentence for each unknown key, with what replaces it or the known key most
        like it, and for each value that means another one.

    Raises:
        ConfigError: If a value is of the wrong type.
    """
    roles = tuple(dict.fromkeys([*_PACKAGED, *extra_prefixes]))
    warnings = [src.user_problem] if src.user_problem else []
    for name in dict.fromkeys([*src.names(), *_PLAIN, *filter(src.lookup, _REMOVED)]):
        key = _known(name, roles)
        if key is not None:
            warnings += [*_check_value(src, key), *_hidden(src, name)]
        elif name.partition(".")[0] not in {*roles} - {*_PACKAGED}:  # such a role knows its keys
            warnings.append(removed(name) or _unknown(name, roles))
    return warnings + _check_models(src)


_PLAIN = tuple(name for name in BY_NAME if "{" not in name)
_REMOVED = tuple(name for name in REMOVED if "*" not in name and "." in name)


def _known(name: str, roles: tuple[str, ...]) -> Key | None:
    if name in BY_NAME or name.rpartition(".")[0] in roles:
        return find(name)
    stands_for = provider_key(name)
    return replace(BY_NAME[stands_for], name=name) if stands_for else None


def _check_value(src: AppConfigSource, key: Key) -> list[str]:
    """Convert a value, and return a notice if the value means another value here."""
    setting = src.lookup(key.name, key.choices)
    if setting is None:
        return []
    refused = refusal(key.name, setting.value)
    if refused is not None:  # an error where it is used; commands that do not use it still work
        return [f"{key.name} cannot be {setting.value}: {refused}"]
    may_be_null = key.default is None or (not key.default and key.type in ("str", "path", "dict"))
    src.read(key, None if may_be_null else UNSET)
    if not isinstance(setting.value, str):
        return []
    meant, note = VALUES.get((key.name, setting.value), ("", ""))
    return [f"{key.name} {setting.value} is read as {meant}: {note}"] if note else []


def _hidden(src: AppConfigSource, name: str) -> list[str]:
    """Return a notice if a key under the original's name does not count."""
    own = ALIASES.get(name)
    if own and own in src.names():
        return [f"{name} has no effect: {own} is set."]
    is_idle = own == "execution.server_token" and src.lookup("execution.server") is None
    return [f"{name} has no effect: it needs execution.server."] if is_idle else []


def _unknown(name: str, roles: tuple[str, ...]) -> str:
    known = list(_PLAIN)
    for row in BY_NAME:
        if row.startswith("{role}."):
            known += [row.replace("{role}", role) for role in roles]
    hint = did_you_mean(name, known, "it has no effect.")
    return f"There is no configuration key {name}; {hint}"


def _check_models(src: AppConfigSource) -> list[str]:
    """Check the keys of each further model like the keys of the main model."""
    warnings = []
    for alias, values in (src.get_dict(_EXT_LLMS, None) or {}).items():
        where = f"{_EXT_LLMS} ({alias})"
        if not isinstance(values, dict):
            raise ConfigError(where, "must be an object of `llm.*` keys.")
        trial = AppConfigSource(None, values, src.app_base_path)
        for name, value in values.items():
            key = _known(name, ())
            if key is None or not name.startswith("llm."):
                warnings.append(f"{where}: {removed(name) or _unknown(name, ())}")
            elif value is not None:
                warnings += _check_value(trial, replace(key, name=name))
    return warnings
