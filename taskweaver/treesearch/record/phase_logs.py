"""Logs of the phases of a node, as they are shown."""

from __future__ import annotations

from taskweaver.treesearch.record.places import NodePlaces

_PHASES = ("download", "coding", "compile", "run")


def read_phase_logs(places: NodePlaces, most_bytes: int) -> dict[str, str]:
    """Return the logs of a node by phase, their beginnings; its workspace has another name there.

    Raises:
        OSError: If one cannot be read.
    """
    found = {}
    here = str(places.workspace)  # they are shown to others
    for name in _PHASES:
        path = places.phase_logs / f"{name}.log"
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(most_bytes).decode("utf-8", "replace")
                left = path.stat().st_size - most_bytes
            head = head.replace(here, "/workspace")
            found[name] = head if left <= 0 else f"{head}\n... {left:,} bytes left out"
    return found
