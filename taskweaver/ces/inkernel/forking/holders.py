"""Variables that keep something alive, found in the user's namespace by their type."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

_MOST_NAMES = 3


def holders(
    namespace: Mapping[str, Any], module: str, class_name: str
) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the variables of a class.

    The module is not imported: without it no object of the class exists.
    """
    class_: Any = vars(sys.modules[module]).get(class_name) if module in sys.modules else None
    if not isinstance(class_, type):
        return
    for name, value in list(namespace.items()):
        # The type alone: `isinstance` may run code of the object.
        if not name.startswith("_") and issubclass(type(value), class_):
            yield name, value


def names_of(namespace: Mapping[str, Any], module: str, class_name: str) -> str:
    """Return the names of the variables of a class for a message; empty when there are none."""
    found = [f"`{name}`" for name, _ in holders(namespace, module, class_name)]
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more
