"""The wiring: an application over a project folder."""

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.session_manager import InMemorySessionStore, SessionManager, SessionStore

__all__ = ["InMemorySessionStore", "SessionManager", "SessionStore", "TaskWeaverApp"]
