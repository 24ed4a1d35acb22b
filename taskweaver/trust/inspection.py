"""Inspection of a project folder, and the reset of everything without consent."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.trust.code import dismiss_roles, findings_in_plugins, findings_in_roles, has_plugins
from taskweaver.trust.errors import ForeignProject
from taskweaver.trust.finding import Finding, finding
from taskweaver.trust.places import findings_in_places, set_apart
from taskweaver.trust.values import findings_in_values, reset
from taskweaver.utils.app_utils import CONFIG_FILE

_FOLDERS = ("folder", "private", "owned")
_ADDRESSES = ("llm.", "ext_llms.")

IsConfined = Callable[[str], bool]
"""Whether code runs in a sandbox here, given the value of ``execution.sandbox``."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The effects of opening a project folder.

    Attributes:
        findings: The effects that need consent; none for an ordinary project.
    """

    folder: Path
    findings: tuple[Finding, ...]

    @property
    def digests(self) -> frozenset[str]:
        """The digests of all findings."""
        return frozenset(item.digest for item in self.findings)

    def without(self, granted: Collection[str]) -> tuple[Finding, ...]:
        """Return the findings whose digests are not among `granted`."""
        return tuple(item for item in self.findings if item.digest not in granted)


def inspect_project(src: AppConfigSource, is_confined: IsConfined) -> Inspection:
    """Return the effects of opening a project; reads files, and runs and changes nothing.

    Raises:
        ConfigError: If a value that is needed for that cannot be read.
    """
    found = [*_owner(src), *findings_in_values(src), *findings_in_roles(src)]
    if has_plugins(src) and not is_confined(src.get_enum("execution.sandbox")):
        found += findings_in_plugins(src)
    return Inspection(src.app_base_path, (*found, *findings_in_places(src)))


def _owner(src: AppConfigSource) -> Iterator[Finding]:
    owner = None if src.config_file is None else src.config_file.stat().st_uid
    if owner is not None and owner not in (os.geteuid(), 0):
        name = user_name(owner)
        yield finding("owner", CONFIG_FILE, f"Use the configuration of {name}.", owner)


def user_name(uid: int) -> str:
    """Return the name of a user, with the number."""
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def withhold(
    src: AppConfigSource,
    inspection: Inspection,
    granted: Collection[str],
    is_confined: IsConfined,
) -> None:
    """Reset everything without consent: values to defaults, folders to empty ones.

    Raises:
        ForeignProject: If the configuration belongs to another user, without consent to that.
    """
    withheld = inspection.without(granted)
    for item in withheld:
        if item.kind == "owner":
            file = src.app_base_path / CONFIG_FILE
            raise ForeignProject(str(file), user_name(file.stat().st_uid))
    _set_apart_code(src, withheld)
    for item in withheld:
        if item.kind == "value":
            reset(src, item)
        elif item.kind in _FOLDERS:
            for key in item.keys:
                src.json_file_store.pop(key, None)
    # Without its value a key has its default: that folder may lead elsewhere or hold code, too.
    # Where nothing was reset, another look would find the same.
    left = inspect_project(src, is_confined).without(granted) if withheld else ()
    _set_apart_code(src, left)
    for item in left:
        if item.kind in (*_FOLDERS, "link"):
            set_apart(src, item)
    links = [item for item in inspection.findings if item.kind == "link"]
    src.follows_links = bool(links) and not any(item in withheld for item in links)
    src.trusts_addresses = not any(
        key.startswith(_ADDRESSES) for item in withheld for key in item.keys
    )


def _set_apart_code(src: AppConfigSource, withheld: Collection[Finding]) -> None:
    for item in withheld:
        if item.kind == "roles":
            dismiss_roles(src)
        if item.kind in ("roles", "plugins"):
            set_apart(src, item)
