"""Names in every cell: ``pd``, ``np`` and ``plt``, and functions that read tables.

Modules are imported when one of the names is first used.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Mapping
from typing import Any

from taskweaver.tables.names import KERNEL_FUNCTIONS

USUAL_NAMES = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot"}
PANDAS_OPTIONS = {
    "display.width": 300,
    "display.max_columns": 30,
    "display.max_rows": 60,
    "display.min_rows": 40,
    "display.max_colwidth": 80,
}
_configured: set[str] = set()


class LazyModule(types.ModuleType):
    """Proxy that imports a module at the first access to an attribute."""

    def __init__(self, name: str, namespace: dict[str, Any], alias: str) -> None:
        super().__init__(name)
        self.__dict__["_place"] = (namespace, alias)

    def __getattr__(self, attribute: str) -> Any:
        namespace, alias = self.__dict__["_place"]
        module = importlib.import_module(self.__name__)
        if namespace.get(alias) is self:
            namespace[alias] = module
        configure_libraries()
        return getattr(module, attribute)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__name__))


def add_usual_names(namespace: dict[str, Any]) -> None:
    """Put the usual names into a namespace."""
    for alias, name in USUAL_NAMES.items():
        namespace.setdefault(alias, LazyModule(name, namespace, alias))


def add_functions(namespace: dict[str, Any], hidden: dict[str, Any]) -> None:
    """Put the functions of kernels into a namespace.

    `hidden` holds the names in it that are the kernel's own, with their objects.
    """
    namespace |= KERNEL_FUNCTIONS
    hidden |= KERNEL_FUNCTIONS


def table_reads(*, begin: bool = False) -> list[Any]:
    """Return the reads of tables of the current cell as plain data. Forget all with `begin`."""
    session = sys.modules.get("taskweaver.tables.session")
    if session is None:
        return []
    if begin:
        session.READS.begin()
    return list(session.READS.done)


_OF_KERNEL = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open"})
_OF_HISTORY = re.compile(r"_i?\d*|_ii|_iii|__|___|_[ido]h|_exit_code|__\w+__")


def kernel_names(shell: Any) -> frozenset[str]:
    """Return the names in a shell's namespace that are the kernel's own.

    A name that a cell has bound to another object, ``pd`` for example, is the user's.
    """
    namespace, initial = shell.user_ns, shell.user_ns_hidden
    hidden = (name for name, value in initial.items() if namespace.get(name) is value)
    history = (name for name in namespace if _OF_HISTORY.fullmatch(name))
    return _OF_KERNEL.union(hidden, history)


class MadeBy:
    """The cell that last bound each name.

    Attributes:
        cells: Id of the cell, by name; empty where the variable was restored.
    """

    def __init__(self) -> None:
        self.cells: dict[str, str] = {}
        self._seen: dict[str, int] = {}

    def note(self, exec_id: str, namespace: Mapping[str, Any]) -> None:
        """Attribute every name that is now bound to another object to this cell."""
        seen = {name: id(value) for name, value in namespace.items()}
        self.cells = {
            name: self.cells.get(name, exec_id) if self._seen.get(name) == place else exec_id
            for name, place in seen.items()
        }
        self._seen = seen


def leave_libraries() -> None:
    """Leave the options of libraries, which are a notebook's, alone from now on."""
    _configured.update({"numpy", "pandas"})


def configure_libraries() -> None:
    """Set pandas' display width and NumPy's way to show scalars, once imported."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "set_printoptions") and "numpy" not in _configured:
        _configured.add("numpy")
        numpy.set_printoptions(legacy="1.25")  # 3.5, not np.float64(3.5)
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "set_option") or "pandas" in _configured:
        return
    _configured.add("pandas")
    for option, value in PANDAS_OPTIONS.items():
        pandas.set_option(option, value)
