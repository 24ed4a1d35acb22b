"""The wiring: an application over a project folder."""

from taskweaver.utils.platform import require_linux

require_linux()  # before the imports below, which need its system calls and fail without a reason

from taskweaver.app.app import TaskWeaverApp  # noqa: E402
from taskweaver.app.session_manager import (  # noqa: E402
    InMemorySessionStore,
    SessionManager,
    SessionStore,
)

__all__ = ["InMemorySessionStore", "SessionManager", "SessionStore", "TaskWeaverApp"]
