"""The document says what is true: its example runs, and it shows the models' instructions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from taskweaver.memory.branched import instructions

DOCUMENT = Path(__file__).parents[3] / "docs" / "memory.md"


def test_the_example_prints_what_the_document_says(tmp_path: Path) -> None:
    text = DOCUMENT.read_text("utf-8")
    match = re.search(r"```python\n(.*?)```\n\nIt prints:\n\n```text\n(.*?)```", text, re.DOTALL)
    assert match is not None
    done = subprocess.run(
        [sys.executable, "-c", match[1]],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == match[2]


def test_every_program_of_the_document_runs(tmp_path: Path) -> None:
    for program in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL):
        subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, check=True
        )


def test_the_instructions_are_shown_as_they_are() -> None:
    assert instructions() in DOCUMENT.read_text("utf-8")
