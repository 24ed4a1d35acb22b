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

HARNESS = Path(__file__).parent / "harness.py"


@dataclass(frozen=True)
class Saved:
    """A namespace that a process saved twice.

    Attributes:
        folder: Where chunks and results are.
        first: Manifest, bytes written by chunk, and progress of the first save.
        again: The same of the second.
    """

    folder: Path
    first: dict[str, Any]
    again: dict[str, Any]

    @property
    def manifest(self) -> dict[str, Any]:
        """The first manifest."""
        found: dict[str, Any] = self.first["manifest"]
        return found

    @property
    def islands(self) -> list[set[str]]:
        """Names of each island."""
        return [set(island["names"]) for island in self.manifest["islands"]]

    def lost(self) -> dict[str, str]:
        """Types of lost objects by variable; the first of each."""
        return {entry["name"]: entry["type"] for entry in reversed(self.manifest["lost"])}

    def reason(self, name: str) -> str:
        """Reason of a variable's first loss."""
        found: str = next(e["reason"] for e in self.manifest["lost"] if e["name"] == name)
        return found


@dataclass(frozen=True)
class Loaded:
    """A namespace that a fresh process loaded.

    Attributes:
        problems: Name and reason of each problem.
        results: Traceback by check; empty if it passed.
        after: Manifest and counts of a save right after the load.
        names: Names of the namespace in order.
    """

    problems: list[list[str]]
    results: dict[str, str]
    after: dict[str, Any]
    names: list[str]


class Warm:
    """A process that has imported what the harness needs, and forks for each save and load."""

    def __init__(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, str(HARNESS), "serve"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, command: str, folder: Path) -> None:
        """Run the harness in a forked process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command} {folder}\n")
        self._process.stdin.flush()
        status = self._process.stdout.readline()
        assert status == "0\n", (folder / f"{command}.log").read_text()

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@contextmanager
def warm() -> Iterator[None]:
    """Fork each save and load of the block from a process that has imported pandas."""
    process = Warm()
    _WARM.append(process)
    try:
        yield
    finally:
        _WARM.remove(process)
        process.close()


_WARM = list[Warm]()


def run(command: str, folder: Path) -> Any:
    """Run the harness; return its results."""
    if _WARM:
        _WARM[-1].run(command, folder)
        return json.loads((folder / f"{command}.json").read_text())
    done = subprocess.run(
        [sys.executable, str(HARNESS), command, str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
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
