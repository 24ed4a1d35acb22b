"""Suggestions: their form on a post, and the messages that take one."""

from __future__ import annotations

import pytest

from taskweaver.memory.suggestions import Suggestion, Suggestions, chosen

OFFERS = (Suggestion("mean price", "number"), Suggestion("price per city", "table"))


def test_suggestions_come_back_from_their_data() -> None:
    offers = Suggestions(OFFERS, ("`Price` is in euros.",))
    assert Suggestions.from_extra(offers.extra()) == offers
    assert str(offers).splitlines()[0] == "mean price (number)"


@pytest.mark.parametrize("value", [None, 3, "x", [3, {"text": 4}, ""], {"questions": "x"}])
def test_data_of_another_form_gives_none(value: object) -> None:
    assert not Suggestions.from_extra(value)
    assert not Suggestions.from_json("{")


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        ("1", 0), ("2.", 1), ("yes", 0), ("ok!", 0), ("ja bitte", 0), ("the second one", 1),
        ("3", None), ("Mean price?", 0), ("the city one", 1), ("the price one", None),
        ("no", None), ("", None), ("2 of them", None),
    ],
)  # fmt: skip
def test_a_message_takes_a_suggestion(message: str, taken: int | None) -> None:
    assert chosen(message, OFFERS) == ("" if taken is None else OFFERS[taken].text)
    assert chosen(message, ()) == ""
