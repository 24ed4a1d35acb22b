"""Finds roles by their files and their classes by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from taskweaver.role.errors import RoleError, UnknownRole
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.registry.importing import import_role


class RoleRegistry:
    """The roles in the packaged folders and in the project's own.

    Attributes:
        broken: Role files that cannot be used, and why.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._entries: dict[str, RoleEntry] = {}
        self.broken: list[RoleError] = []
        for folder, pattern in product(folders, ("*.role.yaml", "*/*.role.yaml")):
            for path in sorted(folder.glob(pattern)):
                try:
                    entry = RoleEntry.from_yaml_file(path)
                except RoleError as error:
                    self.broken.append(error)
                else:
                    self._entries[entry.name] = entry

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
        """Import a role's class; see `import_role` for the names it may have.

        Raises:
            RoleError: If it cannot be imported.
        """
        try:
            found = import_role(entry, self._folders, list(self._entries.values()))
        except Exception as error:
            raise RoleError(
                entry.name, f"{entry.module} does not import: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, type):
            raise RoleError(entry.name, f"{entry.module} is not a class")
        return found
