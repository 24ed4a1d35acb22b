"""TaskWeaver: ask a question about your data; a plan, code and a live kernel answer it."""

import importlib
from typing import Any

__version__ = "0.1.0"

_PLACES = {"TaskWeaverApp": "taskweaver.app.app"}
"""Modules of names that are imported when they are first used: the package itself stays light."""


def __getattr__(name: str) -> Any:
    """Import a name of the library.

    Raises:
        AttributeError: If there is no such name.
    """
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """Return the names of the package, those not yet imported too."""
    return sorted({*globals(), *_PLACES})
