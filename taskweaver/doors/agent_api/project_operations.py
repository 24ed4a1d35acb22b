"""Operations on the project of the server: checks of what works, and settings."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import read_config_file
from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import KEYS
from taskweaver.doors.agent_api.routes import PREFIX
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused, conflict, stopping
from taskweaver.server.operations import Call, operation
from taskweaver.trust.keys import risk_of
from taskweaver.utils.app_utils import CONFIG_FILE
from taskweaver.utils.files import PRIVATE, write_text

_Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
SettingValue = StrictBool | StrictInt | _Number | Annotated[StrictStr, Field(max_length=4_000)]
"""Value of a setting."""
PlainValue = bool | int | float | str | None


class DoctorCheck(BaseModel):
    """Result of one check: ``warn`` leaves a session usable; `fix` is the remedy, if any."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    fix: str


class DoctorChecks(BaseModel):
    """Results of all checks."""

    checks: list[DoctorCheck]


class ProjectSetting(BaseModel):
    """A setting of the project.

    `value` is in force, `stored` is that of the project's file, null if it has none: it is in force
    from the next start of the server, unless `origin` is the environment or the application.
    """

    name: str
    type: Literal["str", "bool", "int", "float", "enum"]
    doc: str
    choices: list[str]
    minimum: float | None
    default: PlainValue
    value: PlainValue
    stored: PlainValue
    origin: Literal["default", "file", "environment", "application"]


class ProjectSettings(BaseModel):
    """The settings that can be changed."""

    settings: list[ProjectSetting]


class SettingChanges(BaseModel):
    """New values by name; null removes one from the file."""

    values: dict[str, SettingValue | None] = Field(min_length=1, max_length=200)


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


def _shown(value: Any) -> PlainValue:
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


_LIMIT_S = 300.0


class ProjectChecks:
    """Checks of a project. Who asks while they run waits for the same result. Close it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Prepare to check; `command` is that of this program, up to its subcommand."""
        self._command = [*command, "doctor", "--json"]
        self._running: asyncio.Task[DoctorChecks] | None = None
        self._is_closed = False

    async def run(self) -> DoctorChecks:
        """Return the result of the checks.

        Raises:
            RequestRefused: If they do not end in time, or say nothing, or the server stops.
        """
        if self._is_closed:
            raise stopping()
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._checked())
        return await asyncio.shield(self._running)  # others wait for it too

    async def _checked(self) -> DoctorChecks:
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        try:
            async with asyncio.timeout(_LIMIT_S):
                told, errors = await process.communicate()
        except TimeoutError:
            detail = f"The checks did not end within {_LIMIT_S:.0f} s."
            raise RequestRefused(503, "checks-failed", detail) from None
        except asyncio.CancelledError:
            raise stopping() from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        try:
            return DoctorChecks(checks=json.loads(told))
        except ValueError:
            why = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:500]
            detail = f"The checks ended without a result. {why}".strip()
            raise RequestRefused(503, "checks-failed", detail) from None

    async def close(self) -> None:
        """End the checks that run; safe to call again."""
        self._is_closed = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])


_DOCTOR, _SETTINGS = f"{PREFIX}/doctor", f"{PREFIX}/settings"


class ProjectOperations:
    """Operations on the project: an admin has them, no other user does."""

    of_admins = "Settings"

    def __init__(self, sessions: AgentSessions, checks: ProjectChecks) -> None:
        self._app = sessions.app
        self._checks = checks
        self._writing = asyncio.Lock()

    @operation(
        "POST",
        _DOCTOR,
        "Check what works here, as `taskweaver doctor` does; takes seconds, asks the model",
        of_admins="Checks",
    )
    async def _doctor(self, _call: Call) -> DoctorChecks:
        return await self._checks.run()

    @operation(
        "GET",
        _SETTINGS,
        "Settings of the project that can be changed, none of them a secret",
    )
    async def _show(self, _call: Call) -> ProjectSettings:
        found = await asyncio.to_thread(settings_of, self._app.config, self._app.app_dir)
        return ProjectSettings(settings=found)

    @operation(
        "PATCH",
        _SETTINGS,
        "Change settings in the project's file, all or none; in force from the next start",
    )
    async def _change(self, call: Call, wanted: SettingChanges) -> ProjectSettings:
        async with self._writing:
            await asyncio.to_thread(change_settings, self._app.app_dir, wanted.values)
        return await self._show(call)
