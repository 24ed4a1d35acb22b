"""Parts of a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from taskweaver.ces.common import Client, Snapshot
from taskweaver.llm.api import LLMApi
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.session.branches.branch import BranchParts
from taskweaver.session.limits import LimitsConfig
from taskweaver.session.storage.event_log import EventLog
from taskweaver.session.storage.store import SessionFiles


@dataclass(frozen=True, slots=True)
class SessionMetadata:
    """Id and folders of a session."""

    session_id: str
    workspace: Path
    execution_cwd: Path


@dataclass(frozen=True, slots=True)
class SessionParts:
    """Parts a session owns and closes.

    Branches go by their names; that of `client` need not exist yet. A branch is opened with the
    id of the round it goes on with, empty for none. `new_moment_kernel` makes the kernel of a past
    moment beside that of a branch, forked off a snapshot if there is one; it is stopped before
    another is made.
    """

    emitter: SessionEventEmitter
    events: EventLog
    llm_api: LLMApi
    files: SessionFiles
    open_branch: Callable[[str, str], BranchParts]
    client: Callable[[str], Client]
    fork_kernel: Callable[[str, Snapshot], Client]
    new_moment_kernel: Callable[[str, Snapshot | None], Client]
    limits: LimitsConfig
