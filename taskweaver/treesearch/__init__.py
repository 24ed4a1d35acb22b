"""Tree search: an idea goes in, the best experiment comes out, and every node remembers."""

from taskweaver.utils.system.platform import require_supported

require_supported()
