"""Examples: short conversations that show a role's model what good replies look like."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from taskweaver.memory.conversation import Conversation
from taskweaver.memory.errors import ConversationError
from taskweaver.memory.memory import Memory


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


def current_examples(
    folder: Path, role_set: AbstractSet[str], memory: Memory | None
) -> list[Conversation]:
    """Read the examples that hold now.

    Args:
        folder: Folder of example conversations.
        role_set: Aliases that take part.
        memory: Names the folder inside `folder` by a shared ``example_sub_path`` entry, and none
            by having no such entry; None takes `folder` itself.

    Raises:
        ConversationError: If a file is not a conversation, or the folder is not inside `folder`.
    """
    if memory is None:
        return load_examples(folder, role_set=role_set)
    entries = memory.get_shared_memory_entries("example_sub_path")
    if not entries:
        return []
    name = entries[-1].content
    if not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise ConversationError(name, "a sub-path stays inside the folder.")
    try:
        return load_examples(folder, name, role_set)
    except FileNotFoundError as error:
        raise ConversationError(name, str(error)) from error
