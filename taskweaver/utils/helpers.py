"""Small functions under the names that programs for the original TaskWeaver import."""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import importlib
import json
from types import ModuleType
from typing import Any, TextIO

from taskweaver.utils import ids


class EnhancedJSONEncoder(json.JSONEncoder):
    """A JSON encoder that takes dataclasses."""

    def default(self, o: Any) -> Any:
        """Return a dataclass as a mapping."""
        if dataclasses.is_dataclass(o) and not isinstance(o, type):
            return dataclasses.asdict(o)
        return super().default(o)


def create_id(length: int = 4) -> str:
    """Return ``YYYYMMDD-HHMMSS-<hex>`` in UTC, with two digits for each of `length` bytes."""
    return ids.create_id(length=2 * length)


def json_dumps(obj: Any) -> str:
    """Return data, dataclasses included, as JSON."""
    return json.dumps(obj, cls=EnhancedJSONEncoder)


def json_dump(obj: Any, fp: TextIO) -> None:
    """Write data, dataclasses included, as JSON."""
    json.dump(obj, fp, cls=EnhancedJSONEncoder)


def generate_md5_hash(content: str) -> str:
    """Return the MD5 digest of a text, for comparison only."""
    return hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()


def glob_files(path: str | list[str]) -> list[str]:
    """Return the files that match one pattern, or any of several."""
    patterns = [path] if isinstance(path, str) else path
    return [file for pattern in patterns for file in glob.glob(pattern)]  # noqa: PTH207 - texts


def import_module(module_name: str) -> ModuleType:
    """Import a module by the dotted name."""
    return importlib.import_module(module_name)
