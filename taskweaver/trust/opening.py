"""The configuration of a project that is being opened, without everything the user has not allowed.

`TaskWeaverApp` and the commands that look into a project without opening it start here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import user_values
from taskweaver.config.plain_folder import defaults_at, state_place
from taskweaver.trust.answers import answer_for
from taskweaver.trust.effects import (
    PACKAGE,
    TrustEffect,
    digest_of_file,
    digests_below,
    is_shipped,
    risky_places,
    risky_values,
    set_apart,
)
from taskweaver.trust.errors import ForeignProject, ProjectNotTrusted
from taskweaver.trust.keys import known_key
from taskweaver.utils.app_utils import CONFIG_FILE, config_file_of
from taskweaver.utils.system.installation import own_command

_ROLES, _PLUGINS, _TAKING_PART = "role.base_path", "plugin.base_path", "session.roles"
_MODULES = frozenset({".py", ".pyc", ".so"})
_ENDPOINT = frozenset(
    "llm.api_type llm.api_base llm.api_key llm.model llm.api_version llm.embedding_api_type"
    " llm.embedding_api_base llm.embedding_model".split()
)

IsConfined = Callable[[str], bool]
"""Whether code runs in a sandbox here, given the value of ``execution.sandbox``."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The effects of opening a project folder.

    Attributes:
        folder: The folder.
        effects: The effects that need consent; none for an ordinary project.
        owner: The other user that the configuration belongs to; empty for the user's own.
    """

    folder: Path
    effects: tuple[TrustEffect, ...]
    owner: str = ""

    @property
    def digests(self) -> frozenset[str]:
        """A hash of each effect, with all dependencies."""
        effects = [*self.effects, *([self.owner] if self.owner else [])]
        texts = [json.dumps(effect, sort_keys=True, default=str) for effect in effects]
        hashed = (hashlib.sha256(text.encode("utf-8", "backslashreplace")) for text in texts)
        return frozenset(item.hexdigest() for item in hashed)

    @property
    def lines(self) -> list[str]:
        """The effects in lines for the user."""
        owner = [f"{CONFIG_FILE} belongs to {self.owner}"] if self.owner else []
        return [*owner, *(effect.line for effect in self.effects)]

    @property
    def keys(self) -> frozenset[str]:
        """The configuration keys that are removed where consent is missing."""
        return frozenset(key for effect in self.effects for key in effect.keys)

    @property
    def is_granted(self) -> bool | None:
        """Whether the user has agreed to this content, or None before the question."""
        if not self.digests:
            return True
        answer = answer_for(self.folder)
        return answer.is_granted if answer and self.digests <= answer.digests else None


def inspect_project(
    src: AppConfigSource, is_confined: IsConfined, *, has_code: bool = True
) -> Inspection:
    """Return the effects of opening a project. Reads files, and runs and changes nothing.

    Without `has_code` folders of roles and plugins are left out, for programs that run none.

    Raises:
        ConfigError: If a value that is needed for that cannot be read.
    """
    owner = None if src.config_file is None else src.config_file.stat().st_uid
    is_own = owner is None or owner in (os.geteuid(), 0)
    code = _code(src, is_confined) if has_code else ()
    effects = (*risky_values(src), *code, *risky_places(src))
    return Inspection(src.app_base_path, effects, "" if is_own else user_name(owner or 0))


def user_name(uid: int) -> str:
    """Return the name of a user, with the number."""
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _code(src: AppConfigSource, is_confined: IsConfined) -> Iterator[TrustEffect]:
    """Yield the code that runs with the user's rights: roles, and plugins without a sandbox.

    Roles are one effect with the modules and packages beside their folder: any of them can import
    the others.
    """
    folder = Path(src.get_path(_ROLES))
    names = ", ".join(_names_of_roles(folder))
    if names and not is_shipped(folder):
        content = digests_below(folder)
        for path in sorted(folder.parent.iterdir()):
            if path.suffix in _MODULES and path.is_file():
                content[f"../{path.name}"] = digest_of_file(path)
            elif path != folder and (path / "__init__.py").is_file():
                content |= {f"../{path.name}/{name}": h for name, h in digests_below(path).items()}
        yield TrustEffect(f"code of roles, with your rights: {names}", content, (_ROLES,))
    folder = Path(src.get_path(_PLUGINS))
    plugins = ", ".join(sorted(path.stem for path in folder.glob("*.py")))
    if plugins and not is_shipped(folder) and not is_confined(src.get_enum("execution.sandbox")):
        line = f"plugins without a sandbox, with your rights: {plugins}"
        yield TrustEffect(line, digests_below(folder), (_PLUGINS,))


def _names_of_roles(folder: Path) -> list[str]:
    files = sorted([*folder.glob("*.role.yaml"), *folder.glob("*/*.role.yaml")])
    return list(dict.fromkeys(file.name.split(".", 1)[0] for file in files))


def withhold(src: AppConfigSource, is_confined: IsConfined, *, has_code: bool = True) -> None:
    """Remove risky keys from the file's layer, and replace risky folders by empty folders.

    If a model's address is removed, all keys of that endpoint are removed, too.

    Raises:
        ForeignProject: If the configuration belongs to another user.
    """
    inspection = inspect_project(src, is_confined, has_code=has_code)
    if inspection.owner:
        raise ForeignProject(str(src.app_base_path / CONFIG_FILE), inspection.owner)
    store, keys = src.json_file_store, inspection.keys
    has_endpoint = any(key.startswith("llm.") for key in keys)
    has_models = "ext_llms.llm_configs" in keys
    src.trusts_addresses = not (has_endpoint or has_models)
    for name in list(store):
        is_alias = has_models and name.endswith(("llm_alias", "vlm_alias"))
        if name in keys or is_alias or (has_endpoint and _is_of_endpoint(name)):
            del store[name]
    if has_code and store.get(_TAKING_PART) is not None:
        _keep_packaged_roles(src)
    # Without its value a key has its default: that folder may lead elsewhere or hold code, too.
    for key in inspect_project(src, is_confined, has_code=has_code).keys:
        set_apart(src, key)
    src.follows_links = False


def _keep_packaged_roles(src: AppConfigSource) -> None:
    """Take the project's roles out of the list of roles."""
    parts = [part for part in PACKAGE.iterdir() if part.is_dir()]
    packaged = {name for part in parts for name in _names_of_roles(part)}
    taking_part = [name for name in src.get_list(_TAKING_PART) if name in packaged]
    del src.json_file_store[_TAKING_PART]
    if taking_part:
        src.json_file_store[_TAKING_PART] = taking_part


def _is_of_endpoint(name: str) -> bool:
    key = known_key(name)
    return key is not None and (key.name in _ENDPOINT or key.name.startswith("llm.aad_"))


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
        """One sentence that names everything that is off, or an empty text for nothing."""
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
    """Return the effects of opening a project. Runs and changes nothing.

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
