"""Description of a configuration key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

KeyType = Literal["str", "bool", "int", "float", "list", "dict", "enum", "path"]


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key.

    Attributes:
        name: Dotted name; a leading ``{role}`` stands for any role's name.
        type: How its value is read.
        default: Value when it is not set; None means not set.
        doc: Its effect, with units.
        choices: Allowed values of an ``enum``.
        minimum: Least value of a number; None for none.
    """

    name: str
    type: KeyType
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    minimum: float | None = 0


def enum(name: str, default: str | None, choices: str, doc: str) -> Key:
    """Return a key with choices, given as words."""
    return Key(name, "enum", default, doc, tuple(choices.split()))


def key(name: str, default: Any, doc: str, *, minimum: float | None = 0) -> Key:
    """Return a key of the type of a default."""
    kind: KeyType = type(default).__name__  # type: ignore[assignment]  # it is named like these
    return Key(name, kind, default, doc, minimum=minimum)


def path(name: str, default: str | None, doc: str) -> Key:
    """Return a key of a path."""
    return Key(name, "path", default, doc)
