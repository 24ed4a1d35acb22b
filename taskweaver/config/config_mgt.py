"""Sources of configuration values.

The first that has it wins: values set with ``source="override"``, the dictionary of the
application, the environment, the project's JSON file, the user's, the default. In the two first
None means "not set here"; from the environment (``null``, ``none``, ``nil``) and the files it means
that the value is None, whatever the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from taskweaver.config.coercion import coerce
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import read_config_file
from taskweaver.config.keys.key import Key, KeyType
from taskweaver.config.keys.known_keys import find
from taskweaver.config.keys.roles import AS_INTERPRETER, INTERPRETERS
from taskweaver.config.replaced import (
    ALIASES,
    AZURE_AD_KEYS,
    PROVIDER_KEYS,
    PROVIDERS,
    provider_key,
    replaced,
)
from taskweaver.utils.redact import keep_places, register_configured, register_environment

Source = Literal["override", "app", "env", "json", "user"]
D = TypeVar("D")

UNSET: Any = object()
"""Stands for a default that was not given; None is a default like others."""

_NONE_WORDS = ("null", "none", "nil")
_CHOOSING = ("llm.api_type", "llm.api_base", "llm.api_key")
_CHOICE = frozenset({*_CHOOSING, "llm.model"})
"""Keys that choose a model together, of any provider: the user's do not mix with nearer ones."""


class Setting(NamedTuple):
    """A value that is set, with the place in words and the layer."""

    value: Any
    where: str
    source: Source


@lru_cache(maxsize=1024)
def env_name(name: str) -> str:
    """Return the environment variable of a key: ``llm.api_base`` is ``LLM_API_BASE``."""
    return name.upper().replace(".", "_")


@lru_cache(maxsize=1024)
def _without_provider(name: str) -> str:
    return provider_key(name) or name


@lru_cache(maxsize=1)
def _choosing_variables() -> list[str]:
    places = ("llm", *(f"llm.{provider}" for provider in PROVIDERS))
    keys = (name.rpartition(".")[2] for name in _CHOOSING)
    return [env_name(f"{place}.{key}") for key in keys for place in places]


class AppConfigSource:
    """The configuration of an application.

    The getters return a value of their type. An unset one is the given `default`, or else
    the default of the table of keys; without either, `ConfigError` is raised, as it is for a
    value that cannot be read as the type. A value that is None is returned only to a caller
    whose own default is None; others get `ConfigError`.

    Attributes:
        app_base_path: Stands for ``${AppBaseDir}``; where relative paths start.
        config_file: The configuration file; None for none.
        defaults: Defaults that replace those of the table of keys.
        follows_links: Whether links among the project's data may lead out of it.
        trusts_addresses: Whether keys of the environment may go to addresses that the file names.
        user_problem: Reason why the user's own file does not count; empty for none.
    """

    def __init__(
        self,
        config_file_path: str | Path | None = None,
        config: Mapping[str, Any] | None = None,
        app_base_path: str | Path | None = None,
        defaults: Mapping[str, Any] | None = None,
        user: Mapping[str, Any] | None = None,
    ) -> None:
        """Read the configuration file.

        Args:
            config_file_path: The JSON file; None for none.
            config: Values of the application, before the environment.
            app_base_path: The project folder; None takes that of the file, or the current one.
            defaults: Defaults that replace those of the table of keys.
            user: Values of the user's own file, after the project's.

        Raises:
            ConfigError: If the file cannot be read.
        """
        file = Path(config_file_path) if config_file_path is not None else None
        base = Path(app_base_path) if app_base_path is not None else (file.parent if file else None)
        self.app_base_path = (base or Path.cwd()).expanduser().resolve()
        self.follows_links = True
        self.trusts_addresses = True
        self.user_problem = ""
        self.config_file = file
        self.defaults = dict(defaults or {})
        self._file_name = file.name if file else ""
        self._stores: dict[Source, dict[str, Any]] = {
            "override": {},
            "app": dict(config or {}),
            "json": read_config_file(file) if file else {},
            "user": dict(user or {}),
        }

    def lookup(self, name: str, choices: Sequence[str] = ()) -> Setting | None:
        """Return the value set for `name`, unconverted, or None without a value.

        In each source, a value for the chosen provider goes first, see `provider_name`, and the
        original's name of a key last. A word of the environment that is one of the key's `choices`
        is that choice, ``none`` too.
        """
        special = self.provider_name(name)
        alias = [old for old, new in ALIASES.items() if new == name]
        role, _, rest = name.rpartition(".")
        if role in INTERPRETERS and rest in AS_INTERPRETER:
            alias.append(f"code_interpreter.{rest}")
        return self._lookup(*([special] if special else []), name, *alias, choices=choices)

    def provider_name(self, name: str) -> str | None:
        """Return the key that stands for one of ``llm.`` under the provider that is chosen.

        ``llm.azure.model`` is ``llm.model`` while ``llm.api_type`` is ``azure``; while that is
        not set, or ``auto``, ``llm.openai.model`` is. None for other keys.
        """
        section, _, rest = name.rpartition(".")
        if section != "llm" or rest not in PROVIDER_KEYS | AZURE_AD_KEYS:
            return None
        chosen = self._lookup("llm.api_type")
        provider = chosen.value if chosen and chosen.value != "auto" else "openai"
        return f"llm.{provider}.{rest}"

    def _lookup(self, *names: str, choices: Sequence[str] = ()) -> Setting | None:
        """Return the value of the first source that has one of `names`."""
        programs: tuple[Source, ...] = ("override", "app")
        for source in programs:
            for name in names:
                value = self._stores[source].get(name)
                if value is not None:
                    return Setting(value, "set by the application", source)
        for name in names:
            text = os.environ.get(env_name(name), "").strip()
            if text:
                word = text.lower()
                value = (word if word in choices else None) if word in _NONE_WORDS else text
                return Setting(value, f"set by the environment variable {env_name(name)}", "env")
        for name in names:
            if name in self._stores["json"]:
                return Setting(self._stores["json"][name], f"set in {self._file_name}", "json")
        user = self._stores["user"]
        for name in names:
            is_of_choice = _without_provider(name) in _CHOICE
            if name in user and not (is_of_choice and self._is_chosen_nearer()):
                return Setting(user[name], "set in the user's config.json", "user")
        return None

    def _is_chosen_nearer(self) -> bool:
        stores = [self._stores[source] for source in ("override", "app", "json")]
        is_set = any(
            value is not None and _without_provider(name) in _CHOOSING
            for store in stores
            for name, value in store.items()
        )
        return is_set or any(os.environ.get(name, "").strip() for name in _choosing_variables())

    def change(self, source: Literal["json", "user"], values: Mapping[str, Any]) -> None:
        """Set values in the layer of a file, without writing the file. `UNSET` removes a value."""
        changed = {**self._stores[source], **values}
        self._stores[source] = {name: v for name, v in changed.items() if v is not UNSET}

    @property
    def link_root(self) -> Path | None:
        """The folder that links among the project's data may not leave, or None."""
        return None if self.follows_links else self.app_base_path

    @property
    def json_file_store(self) -> dict[str, Any]:
        """Values of the configuration file."""
        return self._stores["json"]

    @property
    def in_memory_store(self) -> dict[str, Any]:
        """Values of the application."""
        return self._stores["app"]

    def names(self) -> Iterator[str]:
        """Yield every key that the application or the file sets, once."""
        yield from dict.fromkeys(name for store in self._stores.values() for name in store)

    def read(self, key: Key, default: D = UNSET) -> Any | D:
        """Return the value of a key, or `default`, or without one the key's own.

        Raises:
            ConfigError: If the value cannot be read as the key's type, or is missing.
        """
        setting = self.lookup(key.name, key.choices)
        if setting is None:
            own = self.defaults.get(key.name, key.default)
            value = own if default is UNSET else default
            return self._default(key, value, is_optional=default is None)
        try:
            setting = setting._replace(value=replaced(key.name, setting.value))
        except ValueError as error:
            problem = f"cannot be {setting.value!r} ({setting.where}): {error}"
            raise ConfigError(key.name, problem) from None
        if setting.value is None:
            if default is None:
                return None
            raise ConfigError(
                key.name, f"is {setting.where} to null, which it cannot be.", "Remove it."
            )
        try:
            return coerce(key, setting.value, self.app_base_path)
        except ValueError as error:
            shown = "" if isinstance(setting.value, Mapping | list) else f", not {setting.value!r}"
            raise ConfigError(key.name, f"({setting.where}) must be {error}{shown}.") from None

    def _default(self, key: Key, value: Any, *, is_optional: bool) -> Any:
        if value is None:
            if is_optional:
                return None
            raise ConfigError(
                key.name,
                "is needed and not set.",
                f"Set it in taskweaver_config.json, or as {env_name(key.name)}.",
            )
        if key.type in {"path", "list", "dict"}:  # a path to expand, or one that can be changed
            try:
                return coerce(key, value, self.app_base_path)
            except ValueError as error:
                raise ConfigError(key.name, f"is not set, and {value!r} is not {error}.") from None
        return value

    def _get(self, name: str, type: KeyType, default: D, choices: Sequence[str] = ()) -> Any | D:
        known = find(name) or Key(name, type, None, "", minimum=None)
        options = tuple(choices) or known.choices
        if (type, options) != (known.type, known.choices):  # copying a key is slow
            known = replace(known, type=type, choices=options)
        return self.read(known, default)

    def get_str(self, name: str, default: D = UNSET) -> str | D:
        """Return a text."""
        return self._get(name, "str", default)

    def get_bool(self, name: str, default: D = UNSET) -> bool | D:
        """Return a truth value."""
        return self._get(name, "bool", default)

    def get_int(self, name: str, default: D = UNSET) -> int | D:
        """Return a whole number."""
        return self._get(name, "int", default)

    def get_float(self, name: str, default: D = UNSET) -> float | D:
        """Return a number."""
        return self._get(name, "float", default)

    def get_list(self, name: str, default: D = UNSET) -> list[str] | D:
        """Return a list of texts."""
        return self._get(name, "list", default)

    def get_dict(self, name: str, default: D = UNSET) -> dict[str, Any] | D:
        """Return a dictionary."""
        return self._get(name, "dict", default)

    def get_path(self, name: str, default: D = UNSET) -> str | D:
        """Return an absolute path as text, with placeholders filled in."""
        return self._get(name, "path", default)

    def get_enum(self, name: str, options: Sequence[str] = (), default: D = UNSET) -> str | D:
        """Return one of `options`, or of the choices in the table of keys."""
        return self._get(name, "enum", default, options)

    def set_config_value(
        self, name: str, type: KeyType, value: Any, source: Source = "app"
    ) -> None:
        """Set a value in the override, application or file layer.

        Raises:
            ConfigError: If the value cannot be read as `type`.
            ValueError: If the layer is another one.
        """
        if source not in self._stores:
            raise ValueError(f"values are set in {', '.join(self._stores)}, not in {source!r}")
        if value is not None and type != "enum":
            try:
                known = find(name) or Key(name, type, None, "", minimum=None)
                value = coerce(replace(known, type=type), value, self.app_base_path)
            except ValueError as error:
                raise ConfigError(name, f"must be {error}, not {value!r}.") from None
        self._stores[source][name] = value

    def clone(self) -> Self:
        """Return a copy whose values can be set without touching this one."""
        return deepcopy(self)


def register_secrets(src: AppConfigSource) -> None:
    """Register the keys, tokens and passwords of a configuration and of the environment.

    They are masked from then on in everything this process shows, logs or exports. A value that is
    also a part of the path of a folder the user works in is left out: every path would be masked.
    """
    keep_places(str(src.app_base_path), os.environ.get("PWD", ""), os.environ.get("HOME", ""))
    register_environment(os.environ)
    for name in ("llm.api_key", *src.names()):
        setting = src.lookup(name)
        register_configured(name, setting.value if setting else None)
