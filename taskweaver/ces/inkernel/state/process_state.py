"""State of the process beside the namespace: random generators, options, environment."""

from __future__ import annotations

import importlib
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.namespace import PANDAS_OPTIONS, configure_libraries
from taskweaver.ces.inkernel.process import BASE, OWN_VARIABLES
from taskweaver.utils.redact import names_a_secret, redact_known


class _Numbers:
    """State of `random` before a fork, which reseeds the generator in the child."""

    def __init__(self) -> None:
        self._process = 0
        self._state: Any = None
        os.register_at_fork(before=self._note)

    def _note(self) -> None:
        self._process, self._state = os.getpid(), random.getstate()

    def read(self) -> Any:
        """Return the state of the parent at the fork, or of this process without a parent."""
        return self._state if self._process == os.getppid() else random.getstate()


_numbers = _Numbers()


def process_state() -> dict[str, Any]:
    """Map each part of the process's state to a value. Parts of absent libraries are left out."""
    return {name: value for name, (read, _) in _PARTS.items() if (value := read()) is not None}


def restore_process(name: str, value: Any) -> None:
    """Restore one part of the process's state, unless only earlier releases stored the part.

    Raises:
        Exception: Whatever a library raises.
    """
    if name in _PARTS:
        _PARTS[name][1](value)


def withheld_variables() -> list[str]:
    """Return the names of changed variables of the environment that are secrets: not stored."""
    base = BASE.environment
    return [
        name
        for name, value in sorted(os.environ.items())
        if base.get(name) != value and name not in OWN_VARIABLES and _is_private(name, value)
    ]


def _environment() -> Any:
    """Return variables that differ from the first environment, without secrets."""
    base = BASE.environment
    changed = {
        name: value
        for name, value in sorted(os.environ.items())
        if base.get(name) != value and not _is_private(name, value)
    }
    removed = sorted(name for name in base if name not in os.environ and not names_a_secret(name))
    return (changed, removed) if changed or removed else None


def _is_private(name: str, value: str) -> bool:
    return name in OWN_VARIABLES or names_a_secret(name) or redact_known(value) != value


def _set_environment(difference: tuple[Mapping[str, str], list[str]]) -> None:
    changed, removed = difference
    os.environ.update(changed)
    for name in removed:
        os.environ.pop(name, None)
    time.tzset()  # the zone of times, which is read from there


def _import_path() -> Any:
    """Return folders added before and after the first path, and removed folders."""
    base, own = BASE.path, {"", str(Path.cwd())}
    kept = [entry for entry in sys.path if entry in base]
    added = [entry for entry in sys.path if entry not in base and entry not in own]
    removed = [entry for entry in base if entry not in kept and entry not in own]
    if not added and not removed:
        return None
    first = sys.path.index(kept[0]) if kept else 0
    before = [entry for entry in added if sys.path.index(entry) < first]
    return before, [entry for entry in added if entry not in before], removed


def _set_import_path(difference: tuple[list[str], list[str], list[str]]) -> None:
    before, after, removed = difference
    kept = [entry for entry in sys.path if entry not in {*before, *after, *removed}]
    sys.path[:] = [*before, *kept, *after]


def _of_library(
    name: str, read: Callable[[Any], Any], restore: Callable[[Any, Any], None]
) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Return the functions of a part that read and restore the state in a loaded module."""

    def present() -> Any:
        module = sys.modules.get(name)
        return None if module is None else read(module)

    return present, lambda value: restore(importlib.import_module(name), value)


def _pandas_options() -> Any:
    """Return the options of pandas that differ from a fresh kernel."""
    pandas: Any = sys.modules.get("pandas")
    registered = getattr(sys.modules.get("pandas._config.config"), "_registered_options", None)
    if pandas is None or registered is None:
        return None
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a look at a deprecated option warns
        for key, option in registered.items():
            value = pandas.get_option(key)
            if value != PANDAS_OPTIONS.get(key, option.defval):
                found[key] = value
    return found


def _set_pandas_options(options: Mapping[str, Any]) -> None:
    import pandas as pd

    configure_libraries()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, value in options.items():
            pd.set_option(key, value)


_PARTS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "environment": (_environment, _set_environment),
    "import path": (_import_path, _set_import_path),
    "random": (_numbers.read, random.setstate),
    "numpy.random": _of_library(
        "numpy.random",
        lambda numbers: numbers.get_state(legacy=False),
        lambda numbers, state: numbers.set_state(state),
    ),
    "numpy errors": _of_library(
        "numpy", lambda numpy: numpy.geterr(), lambda numpy, kinds: numpy.seterr(**kinds)
    ),
    "numpy print options": _of_library(
        "numpy",
        lambda numpy: numpy.get_printoptions(),
        lambda numpy, options: numpy.set_printoptions(**options),
    ),
    "pandas options": (_pandas_options, _set_pandas_options),
    # The files whose tables were reported; see `Reads` there.
    "files of tables": _of_library(
        "taskweaver.tables.session",
        lambda tables: tables.READS.known(),
        lambda tables, known: tables.READS.restore(known),
    ),
}
