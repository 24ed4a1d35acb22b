"""Small things every floor may use: ids, files, text, redaction."""

from taskweaver.utils.files import read_yaml, write_yaml
from taskweaver.utils.ids import create_id

__all__ = ["create_id", "read_yaml", "write_yaml"]
