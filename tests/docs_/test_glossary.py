"""The glossary: terms in order, and modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_terms_are_in_order_and_their_modules_exist() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text("utf-8").splitlines() if " | [" in line]
    terms = [row[0].removeprefix("| ") for row in rows]
    assert len(terms) > 30
    assert terms == sorted(terms, key=str.lower)
    links = [re.search(r"\((.*)\)", row[-1]) for row in rows]
    assert [link for link in links if not link or not (PAGE.parent / link[1]).exists()] == []
