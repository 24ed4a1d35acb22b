"""The wiring: an application over a project folder."""

from taskweaver.utils.system.platform import require_supported

require_supported()  # before the imports below, which fail elsewhere without a reason

from taskweaver.app.app import TaskWeaverApp  # noqa: E402
from taskweaver.app.session_manager import (  # noqa: E402
    InMemorySessionStore,
    SessionManager,
    SessionStore,
)

__all__ = ["InMemorySessionStore", "SessionManager", "SessionStore", "TaskWeaverApp"]
