"""The Echo: answers with the text of the task."""

from __future__ import annotations

from taskweaver.ext_role.task import TaskRole
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy
from taskweaver.role.role import RoleConfig


class EchoConfig(RoleConfig):
    """Keys under ``echo.``."""

    def _configure(self) -> None:
        self.decorator = self._get_str("decorator")


class Echo(TaskRole):
    """A role that repeats messages, useful to try a project's wiring without a kernel."""

    config: EchoConfig
    config_type = EchoConfig

    def answer(self, task: Post, proxy: PostEventProxy) -> str:  # noqa: ARG002 - there is no progress
        """Return the task's message, between two decorators."""
        return f"{self.config.decorator}{task.message}{self.config.decorator}"
