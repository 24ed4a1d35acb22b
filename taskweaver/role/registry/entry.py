"""The description of a role: ``<name>.role.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from taskweaver.role.errors import RoleError
from taskweaver.utils.files import parse_yaml_once, read_text


@dataclass(frozen=True, slots=True)
class RoleEntry:
    """Contents of a role file.

    Attributes:
        name: Name in the configuration: the file's name up to the first dot.
        alias: Name in posts and prompts.
        module: Dotted path of the role's class.
        intro: Description of the role for the Planner.
        path: Its file; None when it was not read from one.
    """

    name: str
    alias: str
    module: str
    intro: str
    path: Path | None = None

    @classmethod
    def from_yaml_file(cls, path: Path) -> Self:
        """Read a role file.

        Raises:
            RoleError: If it cannot be read or a field is missing.
        """
        try:
            data = parse_yaml_once(read_text(path), str(path))
        except (OSError, ValueError) as error:
            raise RoleError(str(path), f"the file cannot be read: {error}") from error
        if not isinstance(data, Mapping):
            raise RoleError(str(path), "the file must hold alias, module and intro")
        for field in ("alias", "module", "intro"):
            if not isinstance(data.get(field), str) or not data[field].strip():
                raise RoleError(str(path), f"`{field}` must be a text")
        name = path.name.split(".", 1)[0]
        return cls(name, data["alias"], data["module"], data["intro"], path)
