"""Finds roles by their files and their classes by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taskweaver.role.entry import RoleEntry
from taskweaver.role.errors import RoleError, UnknownRole

_PACKAGE = Path(__file__).parent.parent
_PACKAGED_ROLES = "taskweaver.ext_role"


class RoleRegistry:
    """The roles in the packaged folders and in the project's own.

    Attributes:
        broken: Role files that cannot be used, and why.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._entries: dict[str, RoleEntry] = {}
        self.broken: list[RoleError] = []
        for path in self._files():
            try:
                entry = RoleEntry.from_yaml_file(path)
            except RoleError as error:
                self.broken.append(error)
            else:
                self._entries[entry.name] = entry

    def _files(self) -> Iterator[Path]:
        for folder in self._folders:
            yield from sorted(folder.glob("*.role.yaml"))
            yield from sorted(folder.glob("*/*.role.yaml"))

    def get_role_name_list(self) -> list[str]:
        """Return the names of all usable roles, sorted."""
        return sorted(self._entries)

    def get(self, name: str) -> RoleEntry:
        """Return the role called `name`.

        Raises:
            UnknownRole: If there is none.
        """
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownRole(name, self.get_role_name_list()) from None

    def load_class(self, entry: RoleEntry) -> type[Any]:
        """Import a role's class.

        A project's folder of roles and the folder it is in are on the path meanwhile, so
        ``module: my_role.my_role.MyRole`` and ``roles.my_role.my_role.MyRole`` both name a class
        in ``roles/my_role/my_role.py``. So does ``taskweaver.ext_role.my_role.my_role.MyRole``,
        for roles that were written inside the package.

        Raises:
            RoleError: If it cannot be imported.
        """
        module_name, _, class_name = entry.module.rpartition(".")
        _forget_namesake(module_name, entry)
        with _importable(self._folders):
            try:
                module = importlib.import_module(module_name)
                found = getattr(module, class_name)
            except Exception as error:
                raise RoleError(
                    entry.name, f"{entry.module} does not import: {type(error).__name__}: {error}"
                ) from error
        if not isinstance(found, type):
            raise RoleError(entry.name, f"{entry.module} is not a class")
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
    if package == _PACKAGED_ROLES or (Path(known).exists() and file.samefile(known)):
        return
    for other in list(sys.modules):
        if other in (name, package) or (package and other.startswith(f"{package}.")):
            del sys.modules[other]


@contextmanager
def _importable(folders: Sequence[Path]) -> Iterator[None]:
    # Packaged roles have dotted names; their folders on the path would hide the project's own.
    own = [str(folder) for folder in folders if _PACKAGE not in folder.parents]
    parents = [str(folder.parent) for folder in folders if str(folder) in own]
    packaged = importlib.import_module(_PACKAGED_ROLES).__path__
    added = [folder for folder in dict.fromkeys([*own, *parents]) if folder not in sys.path]
    sys.path.extend(added)
    packaged.extend(own)
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)
        for folder in own:
            packaged.remove(folder)
