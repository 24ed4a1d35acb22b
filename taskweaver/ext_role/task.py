"""Tasks of the roles of this package, and their replies."""

from __future__ import annotations

from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.role.correction import task_of
from taskweaver.role.errors import RoleError
from taskweaver.utils.text import wrap_temporal

_DELIMITER = "{{DELIMITER_"


def task_for(memory: Memory, alias: str) -> Post:
    """Return the newest post another role sent `alias` in this round.

    Raises:
        RoleError: If there is none.
    """
    task = task_of(memory.get_role_rounds(alias), alias)
    if task is None:
        raise RoleError(alias, "nobody gave it a task in this round.")
    return task


def for_this_round(text: str) -> str:
    """Return foreign text marked as meant for this round only.

    Delimiters inside it are broken: a document cannot end the mark and stay for later rounds.
    """
    return wrap_temporal(text.replace(_DELIMITER, "{ {DELIMITER_"))
