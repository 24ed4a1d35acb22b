"""Small things every floor may use: ids, files, text, redaction; `retrieval` ranks texts."""

from taskweaver.utils.lazy import on_demand

__all__ = [  # noqa: F822 - they come on demand
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
__getattr__, __dir__ = on_demand(
    __name__,
    {
        "EnhancedJSONEncoder": "helpers",
        "create_id": "helpers",
        "generate_md5_hash": "helpers",
        "glob_files": "helpers",
        "import_module": "helpers",
        "json_dump": "helpers",
        "json_dumps": "helpers",
        "read_yaml": "files",
        "write_yaml": "files",
    },
)
