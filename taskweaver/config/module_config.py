"""Configuration of one part of the program, read once, where the part is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from injector import inject

from taskweaver.config.config_mgt import UNSET, AppConfigSource
from taskweaver.config.keys.known_keys import find

D = TypeVar("D")


class ModuleConfig:
    """Base of configuration classes. A subclass reads values in `_configure`.

    ::

        class EchoConfig(ModuleConfig):
            def _configure(self) -> None:
                self._set_name("echo")
                self.decorator = self._get_str("decorator", "")     # the key echo.decorator

    The getters take defaults from the table of keys; a key that is not in it needs its own.
    A text or path that is not set and has no default is empty. Classes written for the original
    also pass `required`; whether a default is given says the same.

    Attributes:
        name: Prefix of the keys; empty when they are written out.
        src: Where the values come from.
    """

    name: str = ""

    @inject
    def __init__(self, src: AppConfigSource) -> None:
        """Read the values.

        Raises:
            ConfigError: If one is missing or of the wrong type.
        """
        self.src = src
        self._configure()

    def _configure(self) -> None:
        """Read the values this part needs."""

    def _set_name(self, name: str) -> None:
        self.name = name

    def _key(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def _empty_if_unset(self, key: str, default: Any) -> Any:
        known = find(key)
        is_text = known is not None and not known.default
        return None if default is UNSET and is_text else default

    def _get_str(
        self,
        key: str,
        default: D = UNSET,
        required: bool = True,  # noqa: ARG002, FBT001, FBT002 - kept signature
    ) -> str | D:
        name = self._key(key)
        value = self.src.get_str(name, self._empty_if_unset(name, default))
        return "" if value is None and default is UNSET else value

    def _get_path(self, key: str, default: D = UNSET) -> str | D:
        name = self._key(key)
        value = self.src.get_path(name, self._empty_if_unset(name, default))
        return "" if value is None and default is UNSET else value

    def _get_bool(self, key: str, default: D = UNSET) -> bool | D:
        return self.src.get_bool(self._key(key), default)

    def _get_int(self, key: str, default: D = UNSET) -> int | D:
        return self.src.get_int(self._key(key), default)

    def _get_float(self, key: str, default: D = UNSET) -> float | D:
        return self.src.get_float(self._key(key), default)

    def _get_list(self, key: str, default: D = UNSET) -> list[str] | D:
        return self.src.get_list(self._key(key), default)

    def _get_dict(self, key: str, default: D = UNSET) -> dict[str, Any] | D:
        return self.src.get_dict(self._key(key), default)

    def _get_enum(
        self,
        key: str,
        options: Sequence[str] = (),
        default: D = UNSET,
        required: bool = True,  # noqa: ARG002, FBT001, FBT002 - kept signature
    ) -> str | D:
        return self.src.get_enum(self._key(key), options, default)
