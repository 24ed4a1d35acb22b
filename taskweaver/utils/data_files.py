"""Names of files that hold tables."""

from __future__ import annotations

import re

TEXTS = ("csv", "tsv", "txt", "jsonl", "ndjson", "json")
"""Suffixes of tables that are text, of which a beginning can be read; others need all bytes."""
_TEXTS = "|".join(TEXTS)
_OTHERS = "zip|parquet|xlsx|xlsm|xls|sqlite3|sqlite|db"
DATA_SUFFIX = rf"\.(?:(?:{_TEXTS})(?:\.gz|\.zip)?|{_OTHERS})(?![A-Za-z0-9_])"
"""Pattern of the end of a data file's name."""
_END = re.compile(rf"{DATA_SUFFIX}\s*\Z", re.IGNORECASE)


def is_data_file(name: str) -> bool:
    """Return whether a file's suffix is a suffix of tables. Receipts of answers are no tables."""
    return _END.search(name) is not None and not name.lower().endswith(".receipt.json")
