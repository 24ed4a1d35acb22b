"""Search of stored sessions by words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.session.errors import SessionError
from taskweaver.session.storage.folder import MEMORY_FILE
from taskweaver.session.storage.stored_sessions import stored_sessions
from taskweaver.utils.redact import redact_secrets_in

_MOST_FOUND = 20


def find_in_sessions(folder: Path, query: str, session_id: str = "") -> list[dict[str, Any]]:
    """Return messages and stored memory of the sessions in a folder that contain a word of a query.

    An empty id searches all sessions, the newest first. Secrets are masked.

    Raises:
        SessionError: If the session does not exist.
    """
    stored = stored_sessions(folder)
    if session_id:
        stored = [item for item in stored if item.session_id == session_id]
        if not stored:
            raise SessionError(f"There is no session {session_id!r}, or nothing was said in it.")
    found: list[dict[str, Any]] = []
    for item in stored:
        if item.problem:
            continue
        config = MemoryConfig(memory_log_enabled=False)
        with BranchedMemory(item.folder / MEMORY_FILE, config) as store:
            found += _found(store, item.session_id, query)
        if len(found) >= _MOST_FOUND:
            break
    masked: list[dict[str, Any]] = redact_secrets_in(found[:_MOST_FOUND])
    return masked


def _found(store: BranchedMemory, session_id: str, query: str) -> list[dict[str, Any]]:
    """Return the matches in a session's branches, once each: a branch inherits its parent's."""
    found: dict[str, tuple[str, int | None]] = {}
    for name in store:
        ends = [turn.end_seq for turn in store.turns.load(name, with_posts=False)]
        events = store[name].find_events(query, _MOST_FOUND)
        records = store[name].search(query, _MOST_FOUND)
        for event in events:
            number = sum(0 < end < event.seq for end in ends)  # written once its round has ended
            found.setdefault(event.text, (name, number or None))
        for record in records:
            if record.match != "recency":
                found.setdefault(record.text, (name, None))
    titles = {branch.id: branch.node_uid or branch.id for branch in store.branches()}
    return [
        {
            "session": session_id,
            "branch": name,
            "branch_title": titles[name],
            "number": number,
            "text": text,
        }
        for text, (name, number) in found.items()
    ]
