"""A start of ipykernel without its debugger, which is not used here."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any


def leave_out_debugger() -> None:
    """Hide debugpy from ipykernel: it costs a fifth of a start."""
    modules: dict[str, Any] = sys.modules
    modules["debugpy"] = None
    import ipykernel.debugger  # noqa: F401

    del modules["debugpy"]  # a cell may import it


class _SysWithoutModules:
    modules: Mapping[str, Any] = MappingProxyType({})

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


@contextmanager
def modules_unlisted() -> Iterator[None]:
    """Keep ipykernel from listing the files of all modules for the debugger.

    To look at each module takes a tenth of a start, and copies 4 MiB that are shared with the
    template.
    """
    from ipykernel import ipkernel

    names: Any = ipkernel
    names.sys = _SysWithoutModules()
    try:
        yield
    finally:
        names.sys = sys
