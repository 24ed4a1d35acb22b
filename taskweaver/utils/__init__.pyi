from taskweaver.utils.files import read_yaml, write_yaml
from taskweaver.utils.helpers import (
    EnhancedJSONEncoder,
    create_id,
    generate_md5_hash,
    glob_files,
    import_module,
    json_dump,
    json_dumps,
)

__all__ = [
    "EnhancedJSONEncoder",
    "create_id",
    "generate_md5_hash",
    "glob_files",
    "import_module",
    "json_dump",
    "json_dumps",
    "read_yaml",
    "write_yaml",
]
