"""Fenced blocks of README.md and docs/*.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCED = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)\n(?P=fence)$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, with the line of its first fence."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        """Return the place, as an editor opens it."""
        return f"{self.page}:{self.line}"


def all_blocks(*languages: str) -> list[Block]:
    """Return the blocks in some languages, in order; all without any."""
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, found["language"], found["text"])
        for page in PAGES
        for text in [page.read_text("utf-8")]
        for found in _FENCED.finditer(text)
        if not languages or found["language"] in languages
    ]
