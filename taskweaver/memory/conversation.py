"""A conversation: rounds in order, and its form in files.

The YAML and JSON forms are lossless: ids, shared entries and unicode come back as they were.
Halves of surrogate pairs, which no file can hold, are joined or become the replacement sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, Self, TypedDict

from taskweaver.memory.errors import ConversationError
from taskweaver.memory.forms.wire import check_conversation
from taskweaver.memory.round import Round, RoundDict
from taskweaver.memory.type_vars import RoleName
from taskweaver.memory.utils import encodable, roles_of
from taskweaver.utils.files import PRIVATE, read_yaml, write_yaml
from taskweaver.utils.ids import create_id


class ConversationDict(TypedDict):
    """Wire form; the keys are those of the YAML files."""

    id: NotRequired[str | None]
    plugins: NotRequired[list[dict[str, Any]] | None]
    roles: NotRequired[list[RoleName] | None]
    enabled: NotRequired[bool]
    rounds: list[RoundDict] | None


@dataclass(slots=True)
class Conversation:
    """Rounds in order, and facts about them as a whole.

    Attributes:
        id: Unique; kept when a conversation is loaded.
        rounds: The rounds, oldest first.
        plugins: Plugins it is about, as the mappings of their YAML files.
        roles: Aliases of who takes part, in order of first appearance when loaded without.
        enabled: Whether an example conversation is to be used.
    """

    id: str = ""
    rounds: list[Round] = field(default_factory=list)
    plugins: list[dict[str, Any]] = field(default_factory=list)
    roles: list[RoleName] = field(default_factory=list)
    enabled: bool = True

    @classmethod
    def init(cls) -> Self:
        """Return an empty conversation with a new id."""
        return cls(create_id("conv"))

    def add_round(self, round_: Round) -> None:
        """Append a round."""
        self.rounds.append(round_)

    def to_dict(self) -> ConversationDict:
        """Return the wire form."""
        return {
            "id": self.id,
            "plugins": self.plugins,
            "roles": self.roles,
            "enabled": self.enabled,
            "rounds": [round_.to_dict() for round_ in self.rounds],
        }

    @classmethod
    def from_dict(cls, data: ConversationDict) -> Self:
        """Build a conversation from its wire form; attachments of dropped types are left out.

        Raises:
            ValueError: If anything is missing, of the wrong type or unknown; names the place.
        """
        check_conversation(data)
        rounds = [Round.from_dict(item) for item in data["rounds"] or []]
        return cls(
            id=data.get("id") or create_id("conv"),
            rounds=rounds,
            plugins=data.get("plugins") or [],
            roles=data.get("roles") or roles_of(rounds),
            enabled=data.get("enabled", True),
        )

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a conversation from a file.

        Raises:
            ConversationError: If the file cannot be read or does not hold a conversation.
        """
        try:
            return cls.from_dict(read_yaml(path))
        except OSError as error:
            raise ConversationError(str(path), error.strerror or str(error)) from error
        except ValueError as error:
            raise ConversationError(str(path), _without(path, error)) from error

    def to_yaml(self, path: str | Path) -> None:
        """Write the conversation to a file, all of it or nothing; its folder is made.

        Nothing is masked, since its code may run again; only the owner can read the file.

        Raises:
            ConversationError: If the file cannot be written, or data on it is not plain.
        """
        try:
            write_yaml(path, encodable(self.to_dict()), mode=PRIVATE)
        except OSError as error:
            raise ConversationError(str(path), error.strerror or str(error)) from error
        except (ValueError, RecursionError) as error:
            raise ConversationError(str(path), _without(path, error)) from error


def _without(path: str | Path, error: Exception) -> str:
    """Return the message of an error, without the file's name that it may begin with."""
    return str(error).removeprefix(f"{path}").removeprefix(":").strip()
