"""Documents can be read beside the code: no line of text is longer than 100 characters."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = {"configuration.md", "map.md", "transcripts.md", "analyst-examples.md"}
LONGEST = 100


def long_lines(page: Path) -> list[str]:
    """Return the long lines of a document outside tables and code."""
    found, is_code = [], False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        words = re.sub(r"`[^`]*`", "`", line).strip()  # code in a text cannot be wrapped
        is_free = is_code or words.startswith("|") or " " not in words
        if len(line) > LONGEST and not is_free:
            found.append(f"{page.relative_to(ROOT)}:{number}")
    return found


def test_lines_of_documents_are_short() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "project").glob("*.md")]
    written = [page for page in pages if page.name not in GENERATED and "examples" not in str(page)]
    assert len(written) > 20
    assert not [line for page in written for line in long_lines(page)]
