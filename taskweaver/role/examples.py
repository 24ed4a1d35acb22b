"""Examples: short conversations that show a role's model what good replies look like."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from taskweaver.memory.conversation import Conversation


def load_examples(
    folder: Path,
    sub_path: str | None = None,
    role_set: AbstractSet[str] | None = None,
) -> list[Conversation]:
    """Read the enabled example conversations of a folder, sorted by file name.

    Args:
        folder: Folder of ``*.yaml`` conversations; a missing one holds no examples.
        sub_path: Folder inside `folder` to read instead.
        role_set: Aliases that take part; a conversation with any other role is left out.

    Raises:
        ConversationError: If a file is not a conversation.
        FileNotFoundError: If `sub_path` is given and does not exist.
    """
    where = folder / sub_path if sub_path else folder
    if sub_path and not where.is_dir():
        raise FileNotFoundError(f"no folder of examples at {where}")
    read = (Conversation.from_yaml(path) for path in sorted(where.glob("*.yaml")))
    return [
        conversation
        for conversation in read
        if conversation.enabled and (role_set is None or set(conversation.roles) <= role_set)
    ]
