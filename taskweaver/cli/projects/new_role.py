"""Making a role: two small files that work, to be changed."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence
from pathlib import Path

from taskweaver.cli.projects.inventory import FoundRole
from taskweaver.role.errors import RoleError
from taskweaver.utils.files import write_text
from taskweaver.utils.text import fill

TEMPLATE = Path(__file__).with_name("role_template")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def create_role(folder: Path, name: str, present: Sequence[FoundRole]) -> list[str]:
    """Write a role to a project's folder of roles, which is made when missing.

    Returns:
        Lines for the user: the files made, and how to let the role take part.

    Raises:
        RoleError: If the name is not one, or is taken.
        OSError: If the files cannot be written.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise RoleError(name, "a name is small letters, digits and _, such as price_list.")
    alias = "".join(part.capitalize() for part in name.split("_"))
    target = folder / name
    taken = {word for item in present if item.origin for word in (item.name, item.alias)}
    if {name, alias} & taken or target.exists():
        raise RoleError(name, "there is a role of that name; choose another.")
    for source in sorted(TEMPLATE.glob("*.txt")):
        text = fill(source.read_text("utf-8"), NAME=name, ALIAS=alias)
        write_text(target / f"{name}.{source.stem}", text)
    takes_part = [item.name for item in present if item.takes_part and item.name != name]
    takes_part.sort(key="planner".__ne__)  # the Planner leads, so it is named first
    key = json.dumps({"session.roles": [*takes_part, name]})
    return [
        f"{target} has a role that works: {name}.role.yaml says what it is for, {name}.py does it.",
        f"To let it take part, set in taskweaver_config.json: {key[1:-1]}",
    ]
