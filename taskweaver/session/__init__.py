"""A conversation with its roles, kernel and working directory.

Commands that only read stored sessions need none of these names: they are imported when they are
asked for.
"""

from taskweaver.utils.lazy import on_demand
from taskweaver.utils.system.platform import require_supported

require_supported()

_PLACES = {
    "AppSessionConfig": "config",
    "FileNotAdded": "errors",
    "RoundLimit": "errors",
    "Session": "session",
    "SessionBusy": "errors",
    "SessionClosed": "errors",
    "SessionError": "errors",
    "SessionMetadata": "branches.parts",
}
__all__ = list(_PLACES)
__getattr__, __dir__ = on_demand(__name__, _PLACES)
