"""The conversations in docs/analyst-examples.md are those of today's analyst."""

from __future__ import annotations

from analyst_examples import CONVERSATIONS, PAGE, page


def test_the_conversations_are_as_written() -> None:
    assert len(CONVERSATIONS) >= 10
    assert page() == PAGE.read_text("utf-8"), (
        "python tests/docs_/analyst_examples.py > docs/analyst-examples.md writes the page anew"
    )
