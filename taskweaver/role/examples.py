"""Examples: short conversations with good replies, for a role's prompt."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path

from taskweaver.memory.conversation import Conversation, ConversationError, SubPathRefused
from taskweaver.memory.memory import Memory
from taskweaver.utils.files import inside


def load_examples(
    folder: Path,
    sub_path: str | None = None,
    role_set: AbstractSet[str] | None = None,
    *,
    tell: Callable[[str], object] | None = None,
) -> list[Conversation]:
    """Read the enabled example conversations of a folder, sorted by file name.

    Args:
        folder: Folder of ``*.yaml`` conversations; a missing one holds no examples.
        sub_path: Folder inside `folder` to read instead.
        role_set: Aliases that take part; a conversation with any other role is left out.
        tell: Receives the problem of each broken file, which is left out.

    Raises:
        ConversationError: If a file is not a conversation, without `tell`.
        SubPathRefused: If `sub_path` leads out of `folder`.
        FileNotFoundError: If `sub_path` is given and does not exist.
    """
    try:
        where = inside(folder, sub_path) if sub_path else folder
    except (OSError, ValueError) as error:
        raise SubPathRefused(str(sub_path), f"{error}.") from error
    if sub_path and not where.is_dir():
        raise FileNotFoundError(f"no folder of examples at {where}")
    found = []
    for path in sorted(where.glob("*.yaml")):
        try:
            conversation = _read(path)
        except ConversationError as error:
            if tell is None:
                raise
            tell(f"Example left out: {error}")
            continue
        if conversation.enabled and (role_set is None or set(conversation.roles) <= role_set):
            found.append(conversation)
    return found


def _read(path: Path) -> Conversation:
    try:
        return _unchanged(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ConversationError(str(path), error.strerror or str(error)) from error


@lru_cache(maxsize=256)
def _unchanged(path: Path, changed_ns: int) -> Conversation:  # noqa: ARG001 - a part of the key
    """Read a file once for all branches and sessions, as long as it does not change."""
    return Conversation.from_yaml(path)


class ExampleFolder:
    """The examples of a role, each folder read once.

    Where they are dynamic, the newest shared entry of the type ``example_sub_path`` names the
    folder inside the folder. As long as there is no entry, or no such folder, there are no
    examples: an entry is for all roles, and not each has examples for everything.
    """

    def __init__(self, folder: Path, tell: Callable[[str], object], *, is_dynamic: bool) -> None:
        self._folder = folder
        self._tell = tell
        self._is_dynamic = is_dynamic
        self._read: dict[tuple[str, frozenset[str]], list[Conversation]] = {}

    def examples(self, role_set: AbstractSet[str], memory: Memory | None) -> list[Conversation]:
        """Return the examples that count now: those in which only roles of `role_set` take part.

        The shared entries are in `memory`; None before there is any.

        Raises:
            SubPathRefused: If an entry leads out of the folder.
        """
        sub_path = ""
        if self._is_dynamic:
            entries = memory.get_shared_memory_entries("example_sub_path") if memory else []
            if not entries:
                return []
            sub_path = entries[-1].content
        key = (sub_path, frozenset(role_set))
        if key not in self._read:
            try:
                self._read[key] = load_examples(self._folder, sub_path, role_set, tell=self._tell)
            except FileNotFoundError:
                return []
        return self._read[key]
