"""The configuration of a project that is being opened, without everything the user has not allowed.

`TaskWeaverApp` and the commands that look into a project without opening it start here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import user_values
from taskweaver.config.plain_folder import defaults_at, state_place
from taskweaver.trust.content import TrustEffect
from taskweaver.trust.errors import ProjectNotTrusted
from taskweaver.trust.inspection import Inspection, IsConfined, inspect_project, withhold
from taskweaver.utils.app_utils import config_file_of
from taskweaver.utils.system.installation import own_command

Trust = bool | Collection[str] | None
"""Consent to the effects of opening: yes, no, to those with these hashes, or the stored answer."""


@dataclass(frozen=True, slots=True)
class OpenedProject:
    """A project folder, read.

    Attributes:
        src: Its configuration, without all that lacks consent.
        withheld: The effects without consent.
    """

    src: AppConfigSource
    withheld: tuple[TrustEffect, ...] = ()

    @property
    def notice(self) -> str:
        """One sentence that names everything that is off; empty for nothing."""
        if not self.withheld:
            return ""
        subjects = [key for effect in self.withheld for key in effect.keys or (effect.line,)]
        decide = f"To decide: {own_command('trust', self.src.app_base_path)}"
        off = ", ".join(dict.fromkeys(subjects))
        return " ".join(f"Not trusted and off: {off}. {decide}".split())


def read_project(
    app_dir: str | Path | None,
    values: Mapping[str, Any],
    trust: Trust,
    is_confined: IsConfined,
    *,
    has_code: bool = True,
) -> OpenedProject:
    """Read a project's configuration, with further values of the program.

    Consent that is None is yes for a folder that the program names, and the stored answer for one
    that was looked for: in the current folder and upwards. Without `has_code` folders of roles and
    plugins stay, for a program that runs none.

    Raises:
        ConfigError: If the configuration cannot be read.
        ProjectNotTrusted: If a folder that was looked for needs an answer and has none.
        ForeignProject: If the configuration belongs to another user, without consent to that.
    """
    src = _source(app_dir, values)
    if trust is True or (trust is None and app_dir is not None):
        return OpenedProject(src)
    inspection = inspect_project(src, is_confined)
    if trust is None:
        trust = inspection.is_granted
        if trust is None:
            raise ProjectNotTrusted(str(src.app_base_path), inspection.lines)
    if trust is True or inspection.digests <= frozenset(trust or ()):
        src.follows_links = any(effect.is_link for effect in inspection.effects)
        return OpenedProject(src)
    withhold(src, is_confined, has_code=has_code)
    return OpenedProject(src, inspection.effects)


def inspect_folder(app_dir: str | Path | None, is_confined: IsConfined) -> Inspection:
    """Return the effects of opening a project; runs and changes nothing.

    Raises:
        ConfigError: If the configuration cannot be read.
    """
    return inspect_project(_source(app_dir, {}), is_confined)


def _source(app_dir: str | Path | None, values: Mapping[str, Any]) -> AppConfigSource:
    path, file = config_file_of(app_dir)
    place = None if file else state_place(path)
    user, problem = dict[str, Any](), ""
    try:
        user = user_values()
    except ConfigError as error:  # a chat opens all the same, and says so
        problem = f"{error} It is not used."
    src = AppConfigSource(file, values, path, defaults_at(place) if place else None, user)
    src.user_problem = problem
    return src
