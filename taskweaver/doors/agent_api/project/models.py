"""Requests and answers about the project of the server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr

_Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
SettingValue = StrictBool | StrictInt | _Number | Annotated[StrictStr, Field(max_length=4_000)]
"""Value of a setting."""


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
    default: bool | int | float | str | None
    value: bool | int | float | str | None
    stored: bool | int | float | str | None
    origin: Literal["default", "file", "environment", "application"]


class ProjectSettings(BaseModel):
    """The settings that can be changed."""

    settings: list[ProjectSetting]


class SettingChanges(BaseModel):
    """New values by name; null removes one from the file."""

    values: dict[str, SettingValue | None] = Field(min_length=1, max_length=200)
