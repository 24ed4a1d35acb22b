"""Alternatives in a reply: read from calls, fields and lines, however they are written."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.role.forms.actions import Alternatives, BranchOrder
from taskweaver.role.forms.alternatives import (
    MOST_ALTERNATIVES,
    alternatives_of,
    as_arguments,
    as_text,
)

NAMES = st.from_regex(r"[a-z][a-z_-]{0,10}", fullmatch=True)
TEXTS = st.from_regex(r"[A-Z][a-z ,.']{0,30}[a-z.]", fullmatch=True)
ORDERS = st.dictionaries(NAMES, TEXTS, min_size=1, max_size=MOST_ALTERNATIVES).map(
    lambda texts: tuple(BranchOrder(name, text) for name, text in texts.items())
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(50))
@given(ORDERS)
def test_alternatives_survive_being_written(orders: tuple[BranchOrder, ...]) -> None:
    assert alternatives_of(as_text(orders)) == Alternatives(orders)
    assert alternatives_of(as_arguments(orders)["alternatives"]) == Alternatives(orders)


@settings(max_examples=examples(50))
@given(JSON)
def test_any_value_is_read_or_refused(value: object) -> None:
    with suppress(ValueError):
        found = alternatives_of(value)
        assert 0 < len(found.orders) <= MOST_ALTERNATIVES
        assert all(order.branch and order.text for order in found.orders)


@pytest.mark.parametrize(
    "value",
    [
        "- linear: Fit a line.\n- seasonal: Fit seasons.",
        '[{"name": "linear", "task": "Fit a line."}, {"name": "seasonal", "task": "Fit seasons."}]',
        {"linear": "Fit a line.", "seasonal": "Fit seasons."},
        [
            {"branch": "linear", "order": "Fit a line."},
            {"branch": "seasonal", "text": "Fit seasons."},
        ],
    ],
)
def test_odd_spellings_are_read(value: object) -> None:
    found = alternatives_of(value)
    assert found.orders == (
        BranchOrder("linear", "Fit a line."),
        BranchOrder("seasonal", "Fit seasons."),
    )


def test_a_line_without_a_name_goes_on_with_the_order_before_it() -> None:
    found = alternatives_of("one: Load the table.\nThen count its rows.\ntwo: Guess.")
    assert [order.text for order in found.orders] == [
        "Load the table.\nThen count its rows.",
        "Guess.",
    ]
