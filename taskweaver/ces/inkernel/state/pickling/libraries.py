"""Reduction of objects of numpy, pandas, polars, IPython and tqdm, where these are loaded."""

from __future__ import annotations

import sys
from typing import Any

from taskweaver.ces.inkernel.state.pickling import arrays, frames, rebuild
from taskweaver.ces.inkernel.state.pickling.reducers import refuse
from taskweaver.ces.inkernel.state.pickling.scope import Handler, Notes


def handler_of(kind: type) -> Handler | None:
    """Return the reducer of a library's type, or nothing."""
    if kind.__module__.partition(".")[0] == "tqdm":
        return refuse("a progress bar cannot be stored")
    for module, name, handler in _KINDS:
        base = getattr(sys.modules.get(module), name, None)
        if base is not None and issubclass(kind, base):
            return handler
    return None


def _reduce_shell(notes: Notes, shell: Any) -> Any:
    notes.neutral.add(id(shell))
    return rebuild.shell, ()


_KINDS: tuple[tuple[str, str, Handler], ...] = (
    ("numpy", "memmap", arrays.reduce_memmap),
    ("pandas._libs.internals", "Block", frames.reduce_block),
    ("pandas.core.arrays.arrow", "ArrowExtensionArray", frames.reduce_arrow_array),
    ("polars", "DataFrame", frames.reduce_polars_frame),
    ("polars", "Series", frames.reduce_polars_series),
    ("polars", "LazyFrame", refuse("a query that was not run cannot be stored; collect() it")),
    ("IPython.core.interactiveshell", "InteractiveShell", _reduce_shell),
)
