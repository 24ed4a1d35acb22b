"""The conversations in docs/analyst-examples.md are those of today's analyst."""

from __future__ import annotations

import pytest
from analyst_examples import CONVERSATIONS, PAGE, page

ANEW = "python tests/docs_/analyst_examples.py > docs/analyst-examples.md writes the page anew"


def test_the_first_conversations_are_as_written() -> None:
    assert len(CONVERSATIONS) >= 10
    written = PAGE.read_text("utf-8")
    assert [f"## {file}: {asked[0]}" for file, asked in CONVERSATIONS] == [
        line for line in written.splitlines() if line.startswith("## ")
    ], ANEW
    assert written.startswith(page(CONVERSATIONS[:3])), ANEW


@pytest.mark.long
def test_the_conversations_are_as_written() -> None:
    assert page() == PAGE.read_text("utf-8"), ANEW
