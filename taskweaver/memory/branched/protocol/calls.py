"""Reads an operation of a block that is written as the call of a function.

The names of the operations are names of functions too, so a model may write the arguments of the
call: ``{"mem_core_set": {"key": "best", "value": "8"}}`` in place of ``{"core": {"best": "8"}}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate

ENTRY_FIELDS = frozenset({"key", "value", "importance", "ttl"})
"""Arguments of ``mem_core_set``."""

_ONLY_ARGUMENTS = {
    "core_delete": ("key", "keys"),
    "core_get": ("keys", "key"),
    "recall": ("event",),
    "archival_delete": ("record_id", "id", "ids"),
    "recall_delete": ("event_id", "id", "ids"),
}


def without_call(name: str, given_as: str, value: Any) -> Any:
    """Return an operation in the form of a block, which gives it a name and a value.

    Raises:
        InvalidUpdate: If it may as well be a call as not.
    """
    if not isinstance(value, Mapping):
        return value
    if name == "core":
        return _entry(name, given_as, value)
    if name == "archival_update" and "record_id" in value and "id" not in value:
        return {"id": value["record_id"], **{k: v for k, v in value.items() if k != "record_id"}}
    for argument in _ONLY_ARGUMENTS.get(name, ()):
        if set(value) == {argument}:
            return value[argument]
    return value


def _entry(path: str, given_as: str, value: Mapping[str, Any]) -> Any:
    """Return core updates; one entry with a `key` and a `value` becomes a list, or is refused."""
    if "value" not in value or not isinstance(value.get("key"), str):
        return value
    if given_as != path and ENTRY_FIELDS.issuperset(value):
        return [value]
    raise InvalidUpdate(
        path,
        'has the keys "key" and "value". Write {"NAME": "VALUE"} to set the key NAME; to set keys'
        ' with these very names, write {"key": {"value": "..."}, "value": {"value": "..."}}',
    )
