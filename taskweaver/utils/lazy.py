"""Names of a package that are imported when first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def on_demand(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Its ``__init__.pyi`` declares the names for type checkers, which they are `Any` for otherwise.

    Args:
        package: Name of the package.
        places: The module that each name comes from.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return get, lambda: sorted({*vars(sys.modules[package]), *places})
