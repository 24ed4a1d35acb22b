"""Check for the threads, files and mappings of this kernel that a fork would break.

A fork copies memory and files, but only the thread that asks for it. The parts are below
`forking`: `foreign` judges threads by the library that owns them, `files` judges open files, and
`rest` stops the pools that start again by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskweaver.ces.inkernel.forking.files import OpenFiles, mapping_reasons
from taskweaver.ces.inkernel.forking.foreign import ForeignThreads
from taskweaver.ces.inkernel.forking.mappings import Mappings
from taskweaver.ces.inkernel.forking.rest import rest_native_pools, rest_python_libraries


class ForkSafety:
    """Fork check that separates the kernel's own threads and files from those of user code."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """Record the present threads and files; call it before any code of the user ran."""
        self._namespace = namespace
        self._threads = ForeignThreads(namespace)
        self._files = OpenFiles(namespace)

    def reasons(self) -> list[str]:
        """Return the reasons why a fork would be unsafe now, a phrase each; empty when it is safe.

        Each names the library, the variable where it is known, and the remedy.
        """
        rest_python_libraries(self._namespace)
        mappings, threads = Mappings(), list[str]()
        if self._threads.exist():
            rest_native_pools(mappings.libraries())
            threads = self._threads.reasons(mappings)
        files = self._files.reasons(self._threads.read_pipes)
        return [*threads, *files, *mapping_reasons(mappings)]
