"""A conversation: rounds in order, and the form in files.

YAML and JSON files are lossless: ids, shared entries and unicode come back as they were. Halves of
surrogate pairs, which no file can hold, are joined or become the replacement sign. A file may come
from a person, another version or another program, so each problem is named with its place, e.g.
``rounds[2].post_list[0].send_to is missing``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Self

from taskweaver.errors import TaskWeaverError
from taskweaver.memory.attachment import Attachment
from taskweaver.memory.round import Round
from taskweaver.memory.type_vars import RoleName
from taskweaver.memory.utils import encodable, roles_of
from taskweaver.utils.files import PRIVATE, read_yaml, write_yaml
from taskweaver.utils.ids import create_id


class ConversationError(TaskWeaverError):
    """A stored conversation cannot be read or written.

    Attributes:
        source: The file, or another source.
        problem: The problem in it.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        """Return the problem and the place."""
        return f"The conversation in {self.source} cannot be used: {self.problem}"


class SubPathRefused(ConversationError):
    """A sub-path does not name a folder inside the parent folder."""

    def __str__(self) -> str:
        """Return the problem and the place."""
        return f"The sub-path {self.source!r} cannot be used: {self.problem}"


_TEXT = (str,)
_TEXT_OR_NULL = (str, NoneType)
_LIST_OR_NULL = (list, NoneType)
_KINDS: dict[type, str] = {
    str: "text", list: "a list", dict: "a mapping", bool: "true or false", NoneType: "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shape:
    """Keys of a mapping, and the types of their values.

    Attributes:
        needed: Keys it must have, with the types of their values.
        optional: Keys it may have.
        children: The key that lists further mappings, and their shape.
        check: Raises KeyError or ValueError when the values do not fit each other.
    """

    needed: dict[str, tuple[type, ...]]
    optional: dict[str, tuple[type, ...]]
    children: tuple[str, _Shape] | None = None
    check: Callable[[Any], object] | None = None


_ATTACHMENT = _Shape(
    needed={"type": _TEXT, "content": (object,)},
    optional={"id": _TEXT_OR_NULL},
    check=Attachment.from_dict,
)
_POST = _Shape(
    needed={"send_from": _TEXT, "send_to": _TEXT, "message": _TEXT_OR_NULL},
    optional={"id": _TEXT_OR_NULL, "attachment_list": _LIST_OR_NULL},
    children=("attachment_list", _ATTACHMENT),
)
_ROUND = _Shape(
    needed={"user_query": _TEXT, "state": _TEXT},
    optional={"id": _TEXT_OR_NULL, "post_list": _LIST_OR_NULL},
    children=("post_list", _POST),
    check=lambda data: Round.create("").change_round_state(data["state"]),
)
_CONVERSATION = _Shape(
    needed={"rounds": _LIST_OR_NULL},
    optional={
        "id": _TEXT_OR_NULL,
        "enabled": (bool,),
        "roles": _LIST_OR_NULL,
        "plugins": _LIST_OR_NULL,
    },
    children=("rounds", _ROUND),
)


def check_conversation(data: object) -> None:
    """Check the wire form of a whole conversation.

    Raises:
        ValueError: If anything is missing, of the wrong type or unknown; names the place.
    """
    _check(data, _CONVERSATION, "")


def _check(data: object, shape: _Shape, place: str) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"{place or 'the whole'} is {_kind(data)}, not a mapping")
    for key, types in (shape.needed | shape.optional).items():
        _check_key(data, key, types, is_needed=key in shape.needed, place=_join(place, key))
    if shape.children is not None:
        key, child = shape.children
        for index, item in enumerate(data.get(key) or []):
            _check(item, child, f"{_join(place, key)}[{index}]")
    try:
        if shape.check is not None:
            shape.check(data)
    except KeyError as error:
        raise ValueError(f"{place}: {error} is missing") from error
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _check_key(
    data: dict[Any, Any], key: str, types: tuple[type, ...], *, is_needed: bool, place: str
) -> None:
    if key not in data:
        if is_needed:
            raise ValueError(f"{place} is missing")
    elif not isinstance(data[key], types):
        expected = " or ".join(_KINDS[kind] for kind in types)
        raise ValueError(f"{place} is {_kind(data[key])}, not {expected}")


def _kind(value: object) -> str:
    return _KINDS.get(type(value), f"{value!r:.40}")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


@dataclass(slots=True)
class Conversation:
    """Rounds in order, and facts about the whole.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form. Keys are as in the YAML files."""
        return {
            "id": self.id,
            "plugins": self.plugins,
            "roles": self.roles,
            "enabled": self.enabled,
            "rounds": [round_.to_dict() for round_ in self.rounds],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a conversation from the wire form. Attachments of dropped types are left out.

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
        with _named(path):
            return cls.from_dict(read_yaml(path))

    def to_yaml(self, path: str | Path) -> None:
        """Write the conversation to a file, whole or not at all. A missing folder is made.

        Nothing is masked, since its code may run again; only the owner can read the file.

        Raises:
            ConversationError: If the file cannot be written, or data on it is not plain.
        """
        with _named(path):
            write_yaml(path, encodable(self.to_dict()), mode=PRIVATE)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Raise errors of a file inside the block as errors of the conversation in that file."""
    try:
        yield
    except OSError as error:
        raise ConversationError(str(path), error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        problem = str(error).removeprefix(f"{path}").removeprefix(":").strip()
        raise ConversationError(str(path), problem) from error
