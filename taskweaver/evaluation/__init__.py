"""Evaluation: cases asked of a model, checked by program where possible, and compared."""

from taskweaver.utils.system.platform import require_supported

require_supported()
