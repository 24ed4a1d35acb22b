"""Recepta: a scratch-pad for the Planner's reasoning."""

from __future__ import annotations

from taskweaver.ext_role.task import TaskRole
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy
from taskweaver.role.role import RoleConfig

ACKNOWLEDGEMENT = "Noted. Go on."


class ReceptaConfig(RoleConfig):
    """Keys under ``recepta.``."""

    def _configure(self) -> None:
        self.decorator = self._get_str("decorator")


class Recepta(TaskRole):
    """Acknowledges a note, which stays in the conversation, where the author reads the note."""

    config: ReceptaConfig
    config_type = ReceptaConfig
    only_acknowledges = True

    def answer(self, task: Post, proxy: PostEventProxy) -> str:  # noqa: ARG002 - any note will do
        """Acknowledge the note."""
        return f"{self.config.decorator}{ACKNOWLEDGEMENT}{self.config.decorator}"
