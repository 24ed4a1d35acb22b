"""Operations on the project of the server: checks of what works, and settings."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from taskweaver.doors.agent_api.project import models
from taskweaver.doors.agent_api.project.checks import ProjectChecks
from taskweaver.doors.agent_api.project.settings import change_settings, settings_of
from taskweaver.doors.agent_api.routes import PREFIX, require_admin
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import ApiOperation, Call

_DOCTOR, _SETTINGS = f"{PREFIX}/doctor", f"{PREFIX}/settings"


class ProjectOperations:
    """Operations on the project: an admin has them, no other user does.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions, checks: ProjectChecks) -> None:
        self._app = sessions.app
        self._checks = checks
        self._writing = asyncio.Lock()
        self.operations = [
            ApiOperation(
                "POST",
                _DOCTOR,
                self._doctor,
                "Check what works here, as `taskweaver doctor` does; takes seconds, asks the model",
                answer=models.DoctorChecks,
                problems=(404, 503),
            ),
            ApiOperation(
                "GET",
                _SETTINGS,
                self._show,
                "Settings of the project that can be changed, none of them a secret",
                answer=models.ProjectSettings,
                problems=(404,),
            ),
            ApiOperation(
                "PATCH",
                _SETTINGS,
                self._change,
                "Change settings in the project's file, all or none; in force from the next start",
                body=models.SettingChanges,
                answer=models.ProjectSettings,
                problems=(404, 409),
            ),
        ]

    async def _doctor(self, call: Call) -> BaseModel:
        require_admin(call.user, "Checks")
        return models.DoctorChecks(checks=await self._checks.run())

    async def _show(self, call: Call) -> BaseModel:
        require_admin(call.user, "Settings")
        found = await asyncio.to_thread(settings_of, self._app.config, self._app.app_dir)
        return models.ProjectSettings(settings=found)

    async def _change(self, call: Call) -> BaseModel:
        require_admin(call.user, "Settings")
        values = call.read(models.SettingChanges).values
        async with self._writing:
            await asyncio.to_thread(change_settings, self._app.app_dir, values)
        return await self._show(call)
