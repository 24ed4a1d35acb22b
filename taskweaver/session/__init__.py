"""A conversation with its roles, kernel and working directory."""

from taskweaver.utils.system.platform import require_supported

require_supported()

from taskweaver.session.branches.parts import SessionMetadata  # noqa: E402
from taskweaver.session.config import AppSessionConfig  # noqa: E402
from taskweaver.session.errors import (  # noqa: E402
    FileNotAdded,
    RoundLimit,
    SessionBusy,
    SessionClosed,
    SessionError,
)
from taskweaver.session.session import Session  # noqa: E402

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
