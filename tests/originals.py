"""A project folder in the format of the original, copied for a test."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from support import trust_project

FIXTURE = Path(__file__).parent / "fixtures" / "original_project"


def make_original(folder: Path, config: dict[str, Any] | None = None) -> Path:
    """Copy the folder; `config` sets further keys. Its kernels start cold, and in no sandbox."""
    shutil.copytree(FIXTURE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "taskweaver_config.json"
    keys = json.loads(file.read_text("utf-8")) | (config or {})
    keys |= {"execution.zygote": False, "execution.sandbox": "none"}
    file.write_text(json.dumps(keys), "utf-8")
    made = folder / "experience" / "exp_20240102-030405-0a1b.yaml"
    newer = max(path.stat().st_mtime for path in folder.rglob("*")) + 1
    os.utime(made, (newer, newer))  # as it was made of the conversation beside it
    trust_project(folder)
    return folder
