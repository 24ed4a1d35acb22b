"""Parts of a session, and those that its branches share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from taskweaver.ces.common import Client, Snapshot
from taskweaver.llm.api import LLMApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.memory import Memory
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.role import Role
from taskweaver.session.branches.locks import BranchLocks
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.round_states import RoundStates
from taskweaver.session.spending import Spending
from taskweaver.session.storage.event_log import EventLog
from taskweaver.session.storage.facts import ProjectMemory
from taskweaver.session.storage.store import SessionFiles

NewKernel = Callable[[str, str, Snapshot | None], Client]
"""Makes the kernel of a name in the folder of a branch, forked off a snapshot if there is one."""


@dataclass(frozen=True, slots=True)
class SessionMetadata:
    """Id and folders of a session."""

    session_id: str
    workspace: Path
    execution_cwd: Path


@dataclass(frozen=True, slots=True)
class SessionParts:
    """Parts a session owns and closes.

    Attributes:
        emitter: Receives events.
        events: Keeps them.
        llm_api: Way to the models.
        files: Memory and folders.
        project: Memory of the project.
        spending: Limits of the session.
        new_roles: Makes the roles of a branch, the leader first.
        new_kernel: Makes kernels; the branch need not exist yet.
        prepare_kernels: Prepares, in the background, what kernels start from.
    """

    emitter: SessionEventEmitter
    events: EventLog
    llm_api: LLMApi
    files: SessionFiles
    project: ProjectMemory
    spending: Spending
    new_roles: Callable[[str, Memory, LLMApi, Client], Mapping[str, Role]]
    new_kernel: NewKernel
    prepare_kernels: Callable[[], None]


class Scratch(Protocol):
    """A copy of a branch that is no branch yet.

    Attributes:
        source: Name of the branch that was copied.
    """

    source: str

    def interrupt(self) -> None:
        """Interrupt the running cell of the copy; may be called from any thread."""

    def discard(self) -> None:
        """Remove the copy, unless it has become a branch."""


@dataclass(slots=True)
class SharedParts:
    """Parts that the branches of a session share.

    Attributes:
        parts: Parts that the session owns.
        config: Configuration of the session.
        logger: The log.
        states: States of kernels at the ends of rounds.
        locks: Branches that are at work.
        opening: Held while a part of a branch is opened.
        forking: Held while a branch gets its name.
        session_var: Variables that plugins read.
        scratch: The newest scratch copy; None for none.
    """

    parts: SessionParts
    config: AppSessionConfig
    logger: TelemetryLogger
    states: RoundStates
    locks: BranchLocks = field(default_factory=BranchLocks)
    opening: threading.RLock = field(default_factory=threading.RLock)
    forking: threading.Lock = field(default_factory=threading.Lock)
    session_var: dict[str, str] = field(default_factory=dict)
    scratch: Scratch | None = None
