"""Records and events as plain data, in the form of the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskweaver.memory.branched.types import Event, Record


def plain_record(found: Record, names: Mapping[int, str]) -> dict[str, Any]:
    """Return a record as a dictionary, with its id as a text."""
    return {
        "id": str(found.id),
        "branch_id": names.get(found.branch, ""),
        "text": found.text,
        "tags": list(found.tags),
        "meta": found.meta,
        "created_at": found.created_at,
        "score": round(found.score, 4),
        "match": found.match,
    }


def plain_event(event: Event) -> dict[str, Any]:
    """Return an event as a dictionary, with its fields beside its own.

    Its ``ts`` is the one it was written with, if any; ``created_at`` is the time of the write.
    """
    return {
        "ts": event.created_at,
        **event.data,
        "id": event.seq,
        "kind": event.kind,
        "summary": event.text,
        "tags": list(event.tags),
        "count": event.count,
        "created_at": event.created_at,
    }
