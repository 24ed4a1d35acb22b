"""A request is the notes of the session and the words of the user, which are told apart."""

from __future__ import annotations

import pytest

from taskweaver.memory.forms.request_notes import file_notes, split_notes
from taskweaver.memory.round import Round

ADDED = "files added: orders.csv."
GONE = "variable that is gone, make it again before use: x: too large"


@pytest.mark.parametrize(
    ("query", "notes", "words"),
    [
        ("how many?", [], "how many?"),
        (f"{ADDED}\n{GONE}\nhow many?", [ADDED, GONE], "how many?"),
        (f"how many?\n{ADDED}", [], f"how many?\n{ADDED}"),
        (ADDED, [ADDED], ""),
        ("", [], ""),
        ("files added today?", [], "files added today?"),
    ],
)
def test_notes_stand_before_the_words_of_the_user(query: str, notes: list[str], words: str) -> None:
    assert split_notes(query) == (notes, words)
    round_ = Round.create(query)
    assert (round_.notes, round_.question, round_.user_query) == (notes, words, query)


def test_notes_of_files_name_the_files_that_came() -> None:
    assert file_notes(f"{ADDED}\n{GONE}\n{ADDED}\nhow many?") == f"{ADDED}\n{ADDED}"
    assert file_notes(f"how many?\n{ADDED}") == ""
