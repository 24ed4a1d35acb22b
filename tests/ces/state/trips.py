"""Round trips of namespaces between real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import PATIENCE_S

HARNESS = Path(__file__).with_name("harness.py")
_WARM = list[subprocess.Popen[str]]()
"""A process that has imported pandas, and forks for each save and load."""


@dataclass(frozen=True)
class Saved:
    """A namespace that a process saved twice: manifests, and bytes written by chunk."""

    folder: Path
    first: dict[str, Any]
    again: dict[str, Any]

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = self.first["manifest"]
        return found

    @property
    def islands(self) -> list[set[str]]:
        return [set(island["names"]) for island in self.manifest["islands"]]

    def lost(self) -> dict[str, str]:
        """Return types of lost objects by variable, the first of each."""
        return {entry["name"]: entry["type"] for entry in reversed(self.manifest["lost"])}

    def reason(self, name: str) -> str:
        """Return the reason of a variable's first loss."""
        found: str = next(e["reason"] for e in self.manifest["lost"] if e["name"] == name)
        return found


@dataclass(frozen=True)
class Loaded:
    """A namespace that a fresh process loaded: problems, tracebacks by check, and a save of it."""

    problems: list[list[str]]
    results: dict[str, str]
    after: dict[str, Any]


@contextmanager
def warm() -> Iterator[None]:
    """Fork each save and load of the block from a warm process."""
    command = [sys.executable, str(HARNESS), "serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        _WARM.append(process)
        yield
        _WARM.remove(process)
        process.communicate()


def run(command: str, folder: Path) -> Any:
    """Run the harness; return its results."""
    if _WARM:
        stdin, stdout = _WARM[-1].stdin, _WARM[-1].stdout
        assert stdin is not None
        assert stdout is not None
        print(command, folder, file=stdin, flush=True)
        assert stdout.readline() == "0\n", (folder / f"{command}.log").read_text()
    else:
        words = [sys.executable, str(HARNESS), command, str(folder)]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / f"{command}.json").read_text())


def save(folder: Path, cells: str, **options: Any) -> Saved:
    """Run cells in a process that saves its namespace."""
    (folder / "cells.py").write_text(cells)
    (folder / "options.json").write_text(json.dumps(options))
    return Saved(folder, **run("save", folder))


def load(saved: Saved, checks: Mapping[str, str]) -> Loaded:
    """Load in a fresh process and run checks there."""
    (saved.folder / "checks.json").write_text(json.dumps(dict(checks)))
    return Loaded(**run("load", saved.folder))


def checked(saved: Saved, check: str) -> Loaded:
    """Load in a fresh process; fail if a check does."""
    loaded = load(saved, {"it": check})
    assert not loaded.results["it"], loaded.results["it"]
    return loaded
