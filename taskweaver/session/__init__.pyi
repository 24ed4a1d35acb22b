from taskweaver.session.branches.parts import SessionMetadata
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import (
    FileNotAdded,
    RoundLimit,
    SessionBusy,
    SessionClosed,
    SessionError,
)
from taskweaver.session.session import Session

__all__ = [
    "AppSessionConfig",
    "FileNotAdded",
    "RoundLimit",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "SessionError",
    "SessionMetadata",
]
