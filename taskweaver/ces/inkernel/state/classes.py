"""Stable ids of classes that cells define.

cloudpickle gives each of them a random id the first time it is pickled. In a forked child that
id would differ in each round, and the class would be written again each round. Here the id comes
from the process and the address of the class, which all children share.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cloudpickle import cloudpickle

_origin: list[str] = []


def note_classes(namespace: Mapping[str, Any]) -> None:
    """Give the classes of a namespace ids that all forked children share.

    Call it in the kernel before the fork; classes found later get their ids from their addresses.
    """
    if not _origin:
        _origin.append(uuid.uuid4().hex)
    for value in list(namespace.values()):
        found = value if issubclass(type(value), type) else type(value)
        with suppress(Exception):  # a metaclass may raise anything; the save lists its class
            if found.__module__ == "__main__":
                track(found)


def track(found: Any) -> None:
    """Give a class or type variable its id, unless it has one."""
    if not _origin:
        _origin.append(uuid.uuid4().hex)
    with cloudpickle._DYNAMIC_CLASS_TRACKER_LOCK:  # noqa: SLF001 - guarded by a test
        by_class = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS  # noqa: SLF001
        if found not in by_class:
            id_ = uuid.uuid5(uuid.UUID(_origin[0]), f"{found.__name__} {id(found):x}").hex
            by_class[found] = id_
            cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[id_] = found  # noqa: SLF001
