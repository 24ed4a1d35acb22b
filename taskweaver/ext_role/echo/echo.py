"""The Echo: answers with the text it was sent."""

from __future__ import annotations

from injector import inject

from taskweaver.ext_role.task import task_for
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.role import Role, RoleConfig, RoleEntry


class EchoConfig(RoleConfig):
    """Keys under ``echo.``."""

    def _configure(self) -> None:
        self.decorator = self._get_str("decorator")


class Echo(Role):
    """A role that repeats messages; useful to try a project's wiring without a kernel."""

    @inject
    def __init__(
        self,
        config: EchoConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.decorator = config.decorator

    def reply(self, memory: Memory, **_kwargs: object) -> Post:
        """Answer with the newest message, the decorator before and after it.

        Raises:
            RoleError: If no post was sent to this role.
        """
        task = task_for(memory, self.alias)
        with self.event_emitter.post(self.alias) as proxy:
            proxy.update_send_to(task.send_from)
            proxy.update_message(f"{self.decorator}{task.message}{self.decorator}")
            return proxy.end()
