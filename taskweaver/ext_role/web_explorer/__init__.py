"""The WebExplorer: a role that reads and works web pages in a real browser."""

from taskweaver.utils.system.platform import require_supported

require_supported()
