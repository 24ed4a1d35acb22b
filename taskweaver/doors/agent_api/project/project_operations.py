"""Operations on the project of the server: checks of what works, and settings."""

from __future__ import annotations

import asyncio

from taskweaver.doors.agent_api.project import models
from taskweaver.doors.agent_api.project.checks import ProjectChecks
from taskweaver.doors.agent_api.project.settings import change_settings, settings_of
from taskweaver.doors.agent_api.routes import PREFIX, require_admin
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Call, operation

_DOCTOR, _SETTINGS = f"{PREFIX}/doctor", f"{PREFIX}/settings"


class ProjectOperations:
    """Operations on the project: an admin has them, no other user does."""

    def __init__(self, sessions: AgentSessions, checks: ProjectChecks) -> None:
        self._app = sessions.app
        self._checks = checks
        self._writing = asyncio.Lock()

    @operation(
        "POST",
        _DOCTOR,
        "Check what works here, as `taskweaver doctor` does; takes seconds, asks the model",
        problems=(404, 503),
    )
    async def _doctor(self, call: Call) -> models.DoctorChecks:
        require_admin(call.user, "Checks")
        return models.DoctorChecks(checks=await self._checks.run())

    @operation(
        "GET",
        _SETTINGS,
        "Settings of the project that can be changed, none of them a secret",
        problems=(404,),
    )
    async def _show(self, call: Call) -> models.ProjectSettings:
        require_admin(call.user, "Settings")
        found = await asyncio.to_thread(settings_of, self._app.config, self._app.app_dir)
        return models.ProjectSettings(settings=found)

    @operation(
        "PATCH",
        _SETTINGS,
        "Change settings in the project's file, all or none; in force from the next start",
        problems=(404, 409),
    )
    async def _change(self, call: Call, wanted: models.SettingChanges) -> models.ProjectSettings:
        require_admin(call.user, "Settings")
        async with self._writing:
            await asyncio.to_thread(change_settings, self._app.app_dir, wanted.values)
        return await self._show(call)
