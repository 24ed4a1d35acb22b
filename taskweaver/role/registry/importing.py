"""Import of role classes by the dotted path in their role files.

A project's role may have the dotted path of a packaged one: the original kept its roles inside
the package, so copies of them still say ``module: taskweaver.ext_role.echo.echo.Echo``. The class
beside the role file is then the one that counts.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from taskweaver.role.registry.entry import RoleEntry
from taskweaver.utils.system.installation import state_folder

PACKAGE = Path(__file__).parents[2]
PACKAGED_ROLES = "taskweaver.ext_role"
_importing = threading.RLock()
"""Held while the import system is set up for a project: sessions may open in several threads."""


def import_role(entry: RoleEntry, folders: Sequence[Path], entries: Sequence[RoleEntry]) -> Any:
    """Return the object that the `module` of a role file names; it may import the roles `entries`.

    A project's folder of roles and the folder above it are on the path meanwhile, so
    ``module: my_role.my_role.MyRole`` and ``roles.my_role.my_role.MyRole`` both name a class
    in ``roles/my_role/my_role.py``. So does ``taskweaver.ext_role.my_role.my_role.MyRole``.

    Raises:
        Exception: If the module or the class in it cannot be imported.
    """
    module_name, _, class_name = entry.module.rpartition(".")
    # A packaged role imports nothing of a project's, not even a library that is not installed.
    is_own = not is_packaged(entry.path)
    own = [folder for folder in folders if is_own and not is_packaged(folder)]
    namesakes = _project_roles(entries) if is_own else {}
    with _importing:
        _forget_namesake(module_name, entry)
        _forget_others(namesakes)
        with _importable(own, namesakes):
            return getattr(importlib.import_module(module_name), class_name)


def is_packaged(path: Path | None) -> bool:
    """Return whether a role file or folder is part of this package."""
    return path is None or PACKAGE in path.parents


def _project_roles(entries: Sequence[RoleEntry]) -> dict[str, Path]:
    """Return the modules directly below `PACKAGED_ROLES` that a project has files for.

    A role file of a project that has no such file beside it names the packaged class.
    """
    found: dict[str, Path] = {}
    for entry in entries:
        parts = entry.module.removeprefix(f"{PACKAGED_ROLES}.").split(".")[:-1]
        if entry.path is None or is_packaged(entry.path) or not parts:
            continue
        folder = entry.path.parents[len(parts) - 1]
        file = folder.joinpath(*parts)
        is_own = file.with_suffix(".py").exists() or (file / "__init__.py").exists()
        if is_own and entry.module.startswith(f"{PACKAGED_ROLES}."):
            found[f"{PACKAGED_ROLES}.{parts[0]}"] = folder
    return found


def _forget_namesake(name: str, entry: RoleEntry) -> None:
    """Forget a module of another project that has the name of one beside a role's file."""
    if entry.path is None:
        return
    package, _, stem = name.rpartition(".")
    file = entry.path.with_name(f"{stem}.py")
    known = getattr(sys.modules.get(name), "__file__", None)
    if known is None or not file.exists():
        return
    if Path(known).exists() and file.samefile(known):
        return
    _forget(name if package in ("", PACKAGED_ROLES) else package)


def _forget_others(namesakes: Mapping[str, Path]) -> None:
    """Forget modules below `PACKAGED_ROLES` that another project provided under a shared name.

    A shared name is one that this project or the package provides; other modules stay.
    """
    packaged = {f"{PACKAGED_ROLES}.{path.stem}" for path in (PACKAGE / "ext_role").iterdir()}
    for name, folder in (dict.fromkeys(packaged, PACKAGE) | dict(namesakes)).items():
        module = sys.modules.get(name)
        if module is not None and not any(folder in place.parents for place in _places(module)):
            _forget(name)


def _places(module: ModuleType) -> Iterator[Path]:
    file = getattr(module, "__file__", None)
    if file is not None:
        yield Path(file)
    yield from map(Path, getattr(module, "__path__", ()))


def _forget(name: str) -> None:
    for other in list(sys.modules):
        if other == name or other.startswith(f"{name}."):
            del sys.modules[other]


class _ProjectRoles(MetaPathFinder):
    """Finder of a project's modules whose names are below `PACKAGED_ROLES`."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - part of the protocol
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return where a project's module is; None for any other."""
        folder = self._folders.get(fullname)
        if folder is None:
            return None
        found = PathFinder.find_spec(fullname, [str(folder)], target)
        if found is None or found.loader is not None:
            return found
        # A folder without __init__.py. Its plain list of places outlives this finder.
        plain = ModuleSpec(fullname, None, is_package=True)
        plain.submodule_search_locations = list(found.submodule_search_locations or ())
        return plain


@contextmanager
def _importable(own: Sequence[Path], namesakes: Mapping[str, Path]) -> Iterator[None]:
    """Let a project's roles be imported by any of their names inside the block."""
    # Packaged roles have dotted names; their folders on the path would hide the project's own.
    folders = [str(folder) for folder in own]
    parents = [str(folder.parent) for folder in own]
    packaged = importlib.import_module(PACKAGED_ROLES).__path__
    added = [folder for folder in dict.fromkeys([*folders, *parents]) if folder not in sys.path]
    finder = _ProjectRoles(namesakes)
    # Bytecode that came with a folder can differ from the code beside it, so none is read there.
    bytecode_before = sys.pycache_prefix
    if own:
        sys.pycache_prefix = str((state_folder() or Path(os.devnull)) / "bytecode")
    sys.path.extend(added)
    packaged.extend(folders)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.pycache_prefix = bytecode_before
        sys.meta_path.remove(finder)
        for folder in added:
            sys.path.remove(folder)
        for folder in folders:
            packaged.remove(folder)
