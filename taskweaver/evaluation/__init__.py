"""Evaluation: cases asked of a model, checked, and compared; `cli/eval` prints the results."""

from taskweaver.utils.system.platform import require_supported

require_supported()
