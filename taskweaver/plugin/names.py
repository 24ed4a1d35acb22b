"""Names a plugin cannot have, because cells already mean something else by them."""

from __future__ import annotations

import builtins
import keyword

_OF_THE_KERNEL = frozenset({"pd", "np", "plt", "get_ipython", "display", "In", "Out"})


def problem_of_name(name: str) -> str:
    """Return why a plugin cannot be called `name`; empty when it can."""
    if not name.isidentifier() or keyword.iskeyword(name):
        return f"a plugin's name must be a name Python allows, not {name!r}"
    if name.startswith("_"):
        return f"a plugin's name cannot begin with _ ({name!r})"
    if hasattr(builtins, name) or name in _OF_THE_KERNEL:
        return f"{name!r} means something else in every cell; choose another name"
    return ""
