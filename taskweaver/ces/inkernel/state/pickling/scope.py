"""Bookkeeping of one save: tokens, losses and identities that reducers share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from taskweaver.ces.inkernel.state.pickling import rebuild

MAX_TEXT = 500


class CannotStore(Exception):
    """An object must be replaced by a placeholder, with the message as the reason."""


class GlobalsToken:
    """Token in a stream for the globals of a function: a module's, or the kernel's namespace."""

    __slots__ = ("_module",)

    def __init__(self, module: str = "") -> None:
        """Name the module, or the kernel's namespace by ""."""
        self._module = module

    def __reduce__(self) -> tuple[Any, ...]:
        if self._module:
            return rebuild.module_globals, (self._module,)
        return rebuild.live_namespace, ()


@dataclass(slots=True)
class SaveScope:
    """State shared by all picklings of one save.

    Attributes:
        namespace: The kernel's namespace.
        made_by: Id of the cell that last bound a name.
        tokens: Reductions of objects that are restored by name, by id of the object.
        condemned: Reasons for objects that are lost because they hold a lost one, by id.
        cells: Cell of each lost object, by id.
        handlers: Reducer of each type met so far.
        globals: Tokens of globals by module.
        constants: Ids of lists that classes of libraries share among all instances.
        kept: Objects that must live until the end, for ids must not be used twice.
    """

    namespace: dict[str, Any]
    made_by: Mapping[str, str]
    tokens: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    condemned: dict[int, str] = field(default_factory=dict)
    cells: dict[int, str] = field(default_factory=dict)
    handlers: dict[type, Handler] = field(default_factory=dict)
    globals: dict[str, GlobalsToken] = field(default_factory=dict)
    constants: frozenset[int] = frozenset()
    kept: list[Any] = field(default_factory=list)

    def globals_token(self, module: str = "") -> GlobalsToken:
        """Return the token of a module's globals, or of the kernel's namespace without a name."""
        return self.globals.setdefault(module, GlobalsToken(module))


@dataclass(slots=True)
class Notes:
    """Observations during one pickling.

    Attributes:
        scope: The save it belongs to.
        cell: Id of the cell that made the variable.
        lost: Type and reason of each object replaced by a placeholder, by id.
        neutral: Ids of objects that are restored by name, so that sharing them joins nothing.
        by_value: Ids of classes and functions that are stored themselves.
    """

    scope: SaveScope
    cell: str = ""
    lost: dict[int, Loss] = field(default_factory=dict)
    neutral: set[int] = field(default_factory=set)
    by_value: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Loss:
    """An object that is replaced by a placeholder.

    `type` includes the module; `cell` is the id of the cell that made it.
    """

    type: str
    reason: str
    cell: str


Handler = Callable[[Notes, Any], Any]


def standard_tokens() -> dict[int, tuple[Any, ...]]:
    """Return the reductions of the process's own objects, by id."""
    names = ("__stdin__", "__stdout__", "__stderr__", "stdin", "stdout", "stderr")
    tokens: dict[int, tuple[Any, ...]] = {
        id(getattr(sys, name)): (getattr, (sys, name)) for name in names
    }
    # Its contents are of this process, and hold secrets.
    tokens[id(os.environ)] = (getattr, (os, "environ"))
    return tokens


def type_name(kind: type) -> str:
    """Return a class's name with the module, at most 500 characters."""
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", "?")
    return clip(name if module in {"builtins", "__main__"} else f"{module}.{name}")


def library_version(name: str) -> str:
    """Return the version of a loaded library, or "" when unknown."""
    version = getattr(sys.modules.get(name), "__version__", "")
    return version[:100] if isinstance(version, str) else ""


def clip(text: object) -> str:
    """Return a text of at most 500 characters."""
    shown = str(text)
    return shown if len(shown) <= MAX_TEXT else f"{shown[: MAX_TEXT - 1]}…"


def reason_of(error: BaseException) -> str:
    """Return a reason for a placeholder from an error."""
    if isinstance(error, CannotStore):
        return clip(error)
    try:
        text = str(error)
        if isinstance(error, TypeError) and text.startswith("cannot pickle"):
            return "it cannot be pickled"
    except Exception:  # noqa: BLE001 - an error's text is the user's code and may raise anything
        text = ""
    return clip(f"{type(error).__name__}: {text}" if text else type(error).__name__)
