"""Tree search: attempts at an idea. `service` opens runs, and forks a node into a chat."""

from taskweaver.utils.system.platform import require_supported

require_supported()
