"""The wire form of a conversation, checked before anything is built from it.

A file may come from a person, another version or another program, so each problem is named with its
place, e.g. ``rounds[2].post_list[0].send_to is missing``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from taskweaver.memory.attachment import Attachment
from taskweaver.memory.type_vars import RoundState

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


def _check_state(data: dict[str, Any]) -> None:
    if data["state"] not in get_args(RoundState):
        raise ValueError(f"state is one of {get_args(RoundState)}, not {data['state']!r}")


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
    check=_check_state,
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
    if shape.check is not None:
        _check_values(data, shape.check, place)


def _check_key(
    data: dict[Any, Any], key: str, types: tuple[type, ...], *, is_needed: bool, place: str
) -> None:
    if key not in data:
        if is_needed:
            raise ValueError(f"{place} is missing")
    elif not isinstance(data[key], types):
        expected = " or ".join(_KINDS[kind] for kind in types)
        raise ValueError(f"{place} is {_kind(data[key])}, not {expected}")


def _check_values(data: dict[Any, Any], check: Callable[[Any], object], place: str) -> None:
    try:
        check(data)
    except KeyError as error:
        raise ValueError(f"{place}: {error} is missing") from error
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _kind(value: object) -> str:
    return _KINDS.get(type(value), f"{value!r:.40}")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
