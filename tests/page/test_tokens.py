"""Colours of the page: each pair that stands together can be read."""

from __future__ import annotations

import re
from itertools import product

import pytest
from browser import contrast

from taskweaver.page.assets import page_files

SURFACES = ("surface-0", "surface-1", "surface-2", "selected")
TEXTS = ("text", "muted", "accent", "done", *(f"branch-{number}" for number in range(7)))
PAIRS = [
    *product(TEXTS, SURFACES),
    ("on-accent", "accent"), ("waits", "waits-ground"), ("failed", "failed-ground"),
    ("text", "waits-ground"), ("text", "failed-ground"), ("muted", "failed-ground"),
]  # fmt: skip
LEAST_TEXT, LEAST_EDGE = 4.5, 3.0


def colours(at: int) -> dict[str, bytes]:
    text = page_files().files["styles/tokens.css"].content.decode()
    found = re.findall(r"--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", text)
    return {name: bytes.fromhex(pair[at]) for name, *pair in found}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_edges_can_be_seen(theme: int) -> None:
    known = colours(theme)
    least = dict.fromkeys(PAIRS, LEAST_TEXT)
    least |= {("edge", surface): LEAST_EDGE for surface in SURFACES[:3]}
    found = {pair: contrast(*(known[name] for name in pair)) for pair in least}
    assert {pair: value for pair, value in found.items() if value < least[pair]} == {}
