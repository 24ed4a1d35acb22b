"""The settings of a project that clients may change: those that need no trust, and no secrets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import read_config_file
from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import KEYS
from taskweaver.doors.agent_api.project.models import ProjectSetting
from taskweaver.server.errors import RequestRefused, conflict
from taskweaver.trust.keys import risk_of
from taskweaver.utils.app_utils import CONFIG_FILE
from taskweaver.utils.files import PRIVATE, write_text

_PLAIN = ("str", "bool", "int", "float", "enum")
_ORIGINS: Mapping[str, Literal["file", "environment", "application"]] = {
    "json": "file",
    "env": "environment",
    "app": "application",
    "override": "application",
}
_MOST = 1e9
"""Largest number: no limit of a time, a size or a count that works is larger."""
_CHECKED_ELSEWHERE = frozenset({"logging.level"})
"""Texts of a form that their key does not state: a wrong one keeps a server from starting."""


def _changeable() -> dict[str, Key]:
    plain = (key for key in KEYS if key.type in _PLAIN and "{" not in key.name)
    harmless = {key.name: key for key in plain if risk_of(key.name) == "harmless"}
    return {name: key for name, key in harmless.items() if name not in _CHECKED_ELSEWHERE}


_CHANGEABLE = _changeable()
"""The settings by name: numbers, words and switches that carry no risk in a project's file."""


def settings_of(config: AppConfigSource, folder: Path) -> list[ProjectSetting]:
    """Return the settings: the values in force, and those of the project's file as it is now.

    Raises:
        ConfigError: If the file cannot be read.
    """
    stored = _stored(folder)
    return [_setting(config, key, stored.get(key.name)) for key in _CHANGEABLE.values()]


def _setting(config: AppConfigSource, key: Key, stored: Any) -> ProjectSetting:
    found = config.lookup(key.name, key.choices)
    unset = config.defaults.get(key.name, key.default)
    return ProjectSetting(
        name=key.name,
        type=cast(Any, key.type),
        doc=key.doc,
        choices=list(key.choices),
        minimum=key.minimum if key.type in {"int", "float"} else None,
        default=key.default,
        value=_shown(unset if found is None else _in_force(config, key)),
        stored=_shown(stored),
        origin="default" if found is None else _ORIGINS.get(found.source, "default"),
    )


def _in_force(config: AppConfigSource, key: Key) -> Any:
    try:
        return config.read(key, None)
    except ConfigError:  # a program that starts warns of it, and does not use it
        return None


def _shown(value: Any) -> bool | int | float | str | None:
    """Return a value as JSON can hold it; a file may have any."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float) else None


def change_settings(folder: Path, values: Mapping[str, Any]) -> None:
    """Write settings into the file of a project, the whole of it at once; None removes one.

    Raises:
        RequestRefused: If a setting cannot be changed, or its value does not fit; then none is.
        ConfigError: If the file cannot be read.
    """
    checked = {name: _checked(name, value, folder) for name, value in values.items()}
    file = folder / CONFIG_FILE
    if file.is_symlink():
        raise conflict(f"{CONFIG_FILE} is a link; change the file that it leads to.")
    stored = _stored(folder)
    _require_in_force(folder, stored, checked)
    removed = {name for name, value in checked.items() if value is None}
    kept = {name: value for name, value in (stored | checked).items() if name not in removed}
    mode = None if file.exists() else PRIVATE
    write_text(file, json.dumps(kept, indent=2) + "\n", mode=mode)


def _require_in_force(folder: Path, stored: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse a value without effect: the file sets the key of a provider, which goes first."""
    source = AppConfigSource(config=stored, app_base_path=folder)
    for name in values:
        special = source.provider_name(name)
        if special is not None and special in stored:
            raise conflict(f"{CONFIG_FILE} sets {special}, which goes before {name}; change that.")


def _checked(name: str, value: Any, folder: Path) -> Any:
    key = _CHANGEABLE.get(name)
    if key is None:
        detail = f"{name[:128]} is no setting that clients may change."
        raise RequestRefused(422, "invalid-setting", detail)
    if value is None:
        return None
    try:
        found = AppConfigSource(config={name: value}, app_base_path=folder).read(key)
    except ConfigError as error:
        raise RequestRefused(422, "invalid-setting", str(error)) from None
    if isinstance(found, int | float) and not abs(found) <= _MOST:
        raise RequestRefused(422, "invalid-setting", f"{name} must be at most {_MOST:,.0f}.")
    return found


def _stored(folder: Path) -> dict[str, Any]:
    file = folder / CONFIG_FILE
    return read_config_file(file) if file.exists() else {}
