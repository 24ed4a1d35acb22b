"""Folders and files of a project that lie elsewhere: by a path in its configuration, or a link."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.config.keys.roles import EXT_ROLES, INTERPRETERS
from taskweaver.trust.content import TrustEffect, is_inside, links_out
from taskweaver.trust.keys import risk_of
from taskweaver.utils.app_utils import CONFIG_FILE
from taskweaver.utils.system.installation import state_folder

PACKAGE = Path(__file__).parent.parent
_SHIPPED_PLUGINS = PACKAGE.parent / "plugins"
_ROLES = ("planner", "code_interpreter", "code_generator", *INTERPRETERS, *EXT_ROLES)

_CHECKED_BY_READERS = frozenset({"session.data_dir", "document_retriever.index_folder"})
"""Folders whose readers leave out a link that is not trusted, and read the other files."""

_NESTED = (
    ".example_base_path",
    ".index_folder",
    ".prompt_dir",
    ".experience_dir",
    "role.base_path",
)
"""Ends of the keys whose folders are read with the folders in them."""

_ONLY_READ = (
    "plugin.base_path",
    "role.base_path",
    ".example_base_path",
    ".prompt_dir",
    ".prompt_file_path",
    ".compaction_prompt_path",
)
"""Ends of the keys that may lead into this installation: nothing is written there."""

_WORKSPACE, _SESSIONS = "workspace.workspace_path", "sessions"
_PLUGINS, _RUNS, _LOGS = "plugin.base_path", "search.folder", "logging.log_folder"
_OWN = frozenset({_WORKSPACE, _PLUGINS, _RUNS, _LOGS})
"""Folders that hold code, or that this program writes in."""


def risky_places(src: AppConfigSource) -> Iterator[TrustEffect]:
    """Yield the folders of a project that lie elsewhere, and links in them that lead elsewhere."""
    root = src.app_base_path
    links: dict[str, list[str]] = {}
    for name, path in _places(src):
        if is_shipped(path) and name.endswith(_ONLY_READ):
            continue
        problem = _problem(src, name, path)
        if problem:
            yield TrustEffect(f"{name}: {path}, {problem}", str(path), (name,))
        if not is_inside(path, root):
            continue
        for folder in _folders(name, path):
            for link, target in links_out(folder, root, is_deep=name.endswith(_NESTED)):
                keys = links.setdefault(f"{os.path.relpath(link, root)} -> {target}", [])
                keys += [] if name in _CHECKED_BY_READERS else [name]
    for shown, names in links.items():
        yield TrustEffect(f"link {shown}", shown, tuple(names), is_link=True)


def _problem(src: AppConfigSource, name: str, path: Path) -> str:
    """Return the problem with the folder or file of a key; empty for none."""
    if not is_inside(path, src.app_base_path):
        return "outside of the folder"
    if name == _PLUGINS and _is_private(src, path):
        return "with conversations or keys that code in the sandbox could read"
    if name in _OWN and any(map(_is_of_another, _folders(name, path)[:2])):
        return "which belongs to another user"
    return ""


def _folders(name: str, path: Path) -> list[Path]:
    """Return the folders of a key in which links are looked for."""
    if name == _WORKSPACE:
        return [path, path / _SESSIONS]
    if name == _RUNS and os.path.isdir(path):  # noqa: PTH112 - a long name is no error
        return [path, *(run for run in path.iterdir() if not run.is_symlink())]
    return [path]


def _is_private(src: AppConfigSource, path: Path) -> bool:
    """Return whether a folder holds, or lies in, a path hidden from code in the sandbox."""
    places = [src.app_base_path / CONFIG_FILE]
    for name, below in ((_WORKSPACE, _SESSIONS), (_RUNS, ""), (_LOGS, "")):
        with suppress(ConfigError):
            places.append(Path(src.get_path(name), below))
    own = [place for place in places if place != src.app_base_path]
    return any(is_inside(place, path) or is_inside(path, place) for place in own)


def _is_of_another(path: Path) -> bool:
    """Return whether a folder belongs to another user, who can exchange its files."""
    try:
        return path.stat().st_uid not in (os.geteuid(), 0)
    except OSError:
        return False


def is_shipped(path: Path) -> bool:
    """Return whether a resolved path belongs to this installation of TaskWeaver."""
    return is_inside(path, PACKAGE) or path == _SHIPPED_PLUGINS


def _places(src: AppConfigSource) -> Iterator[tuple[str, Path]]:
    """Yield the keys of paths that the project sets or leaves at their default, with the path."""
    for name in dict.fromkeys([*_path_keys(), *src.json_file_store]):
        if risk_of(name) != "path":
            continue
        setting = src.lookup(name)
        is_of_project = name not in src.defaults if setting is None else setting.source == "json"
        if not is_of_project:
            continue
        try:
            text = src.get_path(name)
        except ConfigError:  # not set, or opening the project is an error
            continue
        if text:
            yield name, Path(text)


def _path_keys() -> Iterator[str]:
    for row in BY_NAME:
        if "{role}" in row:
            yield from (row.replace("{role}", role) for role in _ROLES)
        else:
            yield row


def set_apart(src: AppConfigSource, key: str) -> None:
    """Let a key lead to an empty folder of the user's state, in place of one without trust."""
    state = state_folder() or Path(os.devnull)
    name = hashlib.sha256(os.fsencode(src.app_base_path)).hexdigest()[:32]
    place = state / "untrusted" / name / key
    src.set_config_value(key, "enum", str(place), source="override")
