"""Loading: from a manifest and chunks to a namespace."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.ces.inkernel.state.chunks import (
    DamagedChunk,
    HostChunks,
    no_collection,
    read_entry,
)
from taskweaver.ces.inkernel.state.pickling.rebuild import Namespace
from taskweaver.ces.inkernel.state.pickling.scope import clip, library_version, reason_of, type_name
from taskweaver.ces.inkernel.state.placeholder import LostObject
from taskweaver.ces.inkernel.state.process_state import restore_process
from taskweaver.ces.inkernel.wire import STATE_FORMAT

StateEntry = Mapping[str, Any]
"""Manifest of a stored state, or a part."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A difference between the stored and the restored state. No name means all variables."""

    name: str
    reason: str


def load_state(manifest: StateEntry, namespace: Namespace, source: HostChunks) -> list[Problem]:
    """Put stored variables into a namespace, in their old order, and restore the process's state.

    Variables that are lost come back as placeholders.

    Returns:
        Everything that is not as it was when the state was stored, beyond the manifest's losses.

    Raises:
        ValueError: If the manifest has another format.
    """
    if manifest.get("format") != STATE_FORMAT:
        raise ValueError(f"a stored state of format {manifest.get('format')!r} cannot be read")
    with warnings.catch_warnings(), no_collection():
        warnings.simplefilter("ignore")
        loading = _Loading(manifest, namespace, source)
        loading.run()
    loading.restore_process()
    return loading.problems


def mark_missing(namespace: Namespace, names: Mapping[str, str]) -> None:
    """Replace variables that changed after the stored state by placeholders."""
    for name, reason in names.items():
        kind = type_name(type(namespace[name])) if name in namespace else "the variable"
        namespace[name] = LostObject(kind, clip(reason))


class _Loading:
    def __init__(self, manifest: StateEntry, namespace: Namespace, source: HostChunks) -> None:
        self._manifest = manifest
        self._namespace = namespace
        self._source = source
        self._loaded: dict[str, Any] = {}
        self.problems = [Problem("", text) for text in _version_problems(manifest)]

    def run(self) -> None:
        """Load the islands, and put all variables in order."""
        waiting = list(self._manifest["islands"])
        while waiting:
            # Reading may need a variable of another island: a class's code uses globals.
            failed = [island for island in waiting if self._read(island) is not None]
            if len(failed) == len(waiting):
                break
            waiting = failed
        for island in waiting:
            self._read_apart(island)
        for lost in self._manifest["lost"]:
            if lost["name"] not in self._loaded:
                placeholder = LostObject(lost["type"], lost["reason"], lost["cell"])
                self._loaded[lost["name"]] = placeholder
        for name in self._manifest["order"]:
            if name in self._loaded:
                self._namespace.pop(name, None)
                # Interned, as names that code binds are: the next save's streams are the same.
                self._namespace[sys.intern(name)] = self._loaded[name]

    def restore_process(self) -> None:
        """Restore the state of the process beside the namespace."""
        for name, entry in self._manifest["process"].items():
            try:
                value = read_entry(entry, self._source, self._namespace, [])[name]
                restore_process(name, value)
            except Exception as error:  # noqa: BLE001 - one part takes no others with it; it is reported
                self.problems.append(Problem("", f"{name} is not restored: {reason_of(error)}"))

    def _read(self, entry: StateEntry) -> BaseException | None:
        """Read an island, and return the error on failure."""
        if entry["stream"] is None:
            return DamagedChunk("they could not be pickled together")
        remarks: list[str] = []
        try:
            found = read_entry(entry, self._source, self._namespace, remarks)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - objects are the user's code
            return error
        self.problems += [Problem(entry["names"][0], remark) for remark in remarks]
        for name in entry["names"]:
            if name in found:
                self._loaded[name] = self._namespace[name] = found[name]
        return None

    def _read_apart(self, island: StateEntry) -> None:
        """Read the variables of an island from their own streams."""
        names = island["names"]
        error = self._read(island)
        if error is None:
            return
        if "own" not in island:
            self._lose(names[0], error)
            return
        for name in names:
            failure = self._read({"names": [name], **island["own"][name]})
            if failure is not None:
                self._lose(name, failure)
        reason = f"{', '.join(names[:-1])} and {names[-1]} no longer share memory: {_reason(error)}"
        self.problems.append(Problem(names[0], clip(reason)))

    def _lose(self, name: str, error: BaseException) -> None:
        reason = _reason(error)
        kind = self._manifest["variables"].get(name, {}).get("type", "the variable")
        self.problems.append(Problem(name, clip(reason)))
        self._loaded[name] = LostObject(kind, clip(reason))


def _version_problems(manifest: StateEntry) -> list[str]:
    """Return a phrase for each version that differs too much to rely on."""
    problems = []
    versions = {"python": manifest["python"], **manifest["versions"]}
    for name in ("python", "numpy", "pandas"):
        stored = versions.get(name)
        if stored:
            present = platform.python_version() if name == "python" else _present(name)
            if stored.split(".")[:2] != present.split(".")[:2]:
                problems.append(f"stored with {name} {stored}, read with {present or 'none'}")
    return problems


def _present(name: str) -> str:
    try:
        __import__(name)
    except ImportError:
        return ""
    return library_version(name)


def _reason(error: BaseException) -> str:
    return clip(error) if isinstance(error, DamagedChunk) else reason_of(error)
