"""Contents of a project folder: roles, examples, experiences, and files without a reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.modules import PACKAGE, ROLE_FOLDERS
from taskweaver.cli.opening.consent import read_source
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.errors import ConversationError
from taskweaver.memory.experience import Experience
from taskweaver.plugin.errors import PluginError
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.errors import RoleError, UnknownRole
from taskweaver.role.examples import load_examples
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.registry.registry import RoleRegistry
from taskweaver.utils.files import read_yaml

_EXAMPLES = ("planner", "code_generator")


@dataclass(frozen=True, slots=True)
class FoundRole:
    """A role that was found, or that the configuration names and was not found.

    Attributes:
        name: Name in the configuration.
        alias: Name in posts; empty when it is not known.
        origin: ``packaged``, or its file.
        takes_part: Whether `session.roles` names it.
        problem: The reason it cannot be used; empty if it can.
    """

    name: str
    alias: str
    origin: str
    takes_part: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """Files of one kind.

    Attributes:
        usable: How many can be used.
        off: How many are switched off.
        problems: The problem of each of the others.
    """

    usable: int
    off: int
    problems: list[str]


def found_roles(project: Path | None) -> list[FoundRole]:
    """Return the roles of a project, packaged ones first.

    Each is imported, to see whether it can be; those of the project where that is allowed.

    Raises:
        ConfigError: If the configuration cannot be read.
    """
    folder = role_folder(project)
    src = read_source(project)
    is_allowed = Path(src.get_path("role.base_path")) == folder
    registry = RoleRegistry([*ROLE_FOLDERS, folder])
    wanted = src.get_list("session.roles")
    names = registry.get_role_name_list()
    found = [
        _found(registry, registry.get(name), takes_part=name in wanted, is_allowed=is_allowed)
        for name in names
    ]
    found += [FoundRole(Path(e.role).name, "", e.role, problem=e.problem) for e in registry.broken]
    missing = [UnknownRole(name, names) for name in wanted if name not in names]
    found += [FoundRole(error.role, "", "", True, error.problem) for error in missing]
    return sorted(found, key=lambda item: (item.origin != "packaged", item.name))


def _found(
    registry: RoleRegistry, entry: RoleEntry, *, takes_part: bool, is_allowed: bool
) -> FoundRole:
    is_packaged = entry.path is not None and PACKAGE in entry.path.parents
    problem = ""
    if not is_packaged and not is_allowed:
        problem = "it is not imported: the project is not trusted"
    else:
        try:
            registry.load_class(entry)
        except RoleError as error:
            problem = error.problem
    origin = "packaged" if is_packaged else str(entry.path)
    return FoundRole(entry.name, entry.alias, origin, takes_part, problem)


def role_folder(project: Path | None) -> Path:
    """Return the folder of a project's own roles."""
    return Path(read_source(project, is_code_read=True).get_path("role.base_path"))


def examples_of(src: AppConfigSource, role: str) -> Counted:
    """Count the examples of a role; the application names the broken ones."""
    folder = Path(src.get_path(f"{role}.example_base_path"))
    broken: list[str] = []
    usable = len(load_examples(folder, tell=broken.append))
    return Counted(usable, len(list(folder.glob("*.yaml"))) - usable - len(broken), [])


def experiences_of(src: AppConfigSource) -> Counted:
    """Read the experiences that conversations are saved to."""
    usable, problems = 0, []
    for path in sorted(Path(src.get_path("session.experience_dir")).glob("*exp_*.yaml")):
        try:
            if path.name.startswith("raw_exp_"):
                Conversation.from_yaml(path)
            else:
                Experience.from_dict({"exp_id": path.stem, **read_yaml(path)})
        except (ConversationError, OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path}: {error!r}" if isinstance(error, KeyError) else f"{error}")
        else:
            usable += 1
    return Counted(usable, 0, problems)


def plugins_off(src: AppConfigSource) -> list[str]:
    """Return the names of the plugins that are switched off."""
    found = []
    for path in sorted(Path(src.get_path("plugin.base_path")).glob("[!.]*.yaml")):
        try:
            entry = PluginEntry.from_yaml_file(path)
        except PluginError:  # told as broken
            continue
        if not entry.enabled:
            found.append(entry.name)
    return found


def unread_files(app: TaskWeaverApp) -> Iterator[str]:
    """Yield a line with the reason for each ignored file of the project."""
    src = app.config
    plugins = Path(src.get_path("plugin.base_path"))
    yield from _unread_plugins(plugins)
    for role in _EXAMPLES:
        folder = Path(src.get_path(f"{role}.example_base_path"))
        if not src.get_bool(f"{role}.dynamic_example_sub_path"):
            for path in sorted(folder.glob("*/*.yaml")):
                yield f"{path}: examples in folders need {role}.dynamic_example_sub_path"
        for path in sorted(folder.glob("*.yml")):
            yield f"{path}: examples end in .yaml"
    mock = Path(src.get_path("llm.mock.cache_path"))
    if mock.exists() and not src.get_bool("llm.use_mock"):
        where = "'Which model answers' in the documentation"
        yield f"{mock}: it is read with llm.use_mock alone, see {where}"
    for path in sorted(Path(src.get_path("document_retriever.index_folder")).glob("*.faiss")):
        yield f"{path}: put the documents themselves there, they are indexed here"


def _unread_plugins(folder: Path) -> Iterator[str]:
    codes = {path.stem for path in folder.glob("[!.]*.py")} - _codes(folder)
    for stem in sorted(codes):
        yield f"{folder / stem}.py: no .yaml file there names it"
    for path in sorted(folder.glob("*.yml")):
        yield f"{path}: plugins end in .yaml"
    if any((folder / ".meta").glob("meta_*.yaml")):
        yield f"{folder / '.meta'}: vectors of plugins are not used"


def _codes(folder: Path) -> set[str]:
    """Return the files that plugin descriptions name; broken ones are reported elsewhere."""
    stems = set()
    for path in folder.glob("[!.]*.yaml"):
        try:
            read = read_yaml(path)
        except (OSError, ValueError):
            read = None
        data = read if isinstance(read, dict) else {}
        stems.add(str(data.get("code") or data.get("name") or path.stem).removesuffix(".py"))
    return stems
