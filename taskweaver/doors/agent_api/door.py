"""The agent API as a door of the server."""

from __future__ import annotations

import asyncio
import sys
from types import MappingProxyType

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.errors import KernelError
from taskweaver.config.errors import ConfigError
from taskweaver.doors.agent_api.branch_operations import BranchOperations
from taskweaver.doors.agent_api.event_operations import EventOperations
from taskweaver.doors.agent_api.file_operations import AgentFiles
from taskweaver.doors.agent_api.file_overviews import FileOverviewOperations
from taskweaver.doors.agent_api.memory_operations import MemoryOperations
from taskweaver.doors.agent_api.message_operations import MessageOperations
from taskweaver.doors.agent_api.model_choice import ModelOperations
from taskweaver.doors.agent_api.moment_operations import MomentOperations
from taskweaver.doors.agent_api.project_operations import ProjectChecks, ProjectOperations
from taskweaver.doors.agent_api.search_operations import SearchOperations
from taskweaver.doors.agent_api.search_processes import SearchProcesses
from taskweaver.doors.agent_api.search_trials import ProgramTrials
from taskweaver.doors.agent_api.session_operations import SessionOperations
from taskweaver.doors.agent_api.variable_operations import VariableOperations
from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door
from taskweaver.session.errors import (
    EventsGone,
    LimitReached,
    SessionError,
    UnknownRound,
    UnknownSessionBranch,
)
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.config import SearchConfig

_GROUPS = (
    SessionOperations,
    MessageOperations,
    BranchOperations,
    MomentOperations,
    VariableOperations,
    EventOperations,
    AgentFiles,
    FileOverviewOperations,
    MemoryOperations,
    ModelOperations,
)


class AgentApi(Door):
    """The agent API. Finish and close it."""

    statuses = MappingProxyType(
        {
            UnknownSessionBranch: 404,
            UnknownRound: 404,
            EventsGone: 410,
            LimitReached: 403,
            ConfigError: 409,
            SearchError: 404,
            SessionError: 409,
            BranchedMemoryError: 409,
            KernelError: 503,
        }
    )

    def __init__(self, sessions: AgentSessions) -> None:
        """Offer the sessions of users; the door finishes and closes them."""
        self._sessions = sessions
        command = _command(sessions.app)
        self._searches = SearchProcesses(command, SearchConfig(sessions.app.config).folder)
        self._checks = ProjectChecks(command)
        self._trials = ProgramTrials(sessions.app)
        self.groups = (
            *(kind(sessions) for kind in _GROUPS),
            SearchOperations(sessions, self._searches, self._trials),
            ProjectOperations(sessions, self._checks),
        )

    async def finish(self, grace_s: float) -> None:
        """Refuse new messages, searches, trials and checks, and end the running ones."""
        self._trials.close()
        await asyncio.gather(
            self._sessions.finish(grace_s), self._searches.finish(grace_s), self._checks.close()
        )

    async def close(self) -> None:
        """Close the sessions, and end the searches, trials and checks."""
        self._trials.close()
        await asyncio.gather(self._sessions.close(), self._searches.close(), self._checks.close())


def _command(app: TaskWeaverApp) -> list[str]:
    """Return the command of this program for an application's project, up to its subcommand.

    It has no more trust than the server has.
    """
    trust = ["--no-trust"] if app.withheld else []
    return [sys.executable, "-m", "taskweaver", "-p", str(app.app_dir), *trust]
