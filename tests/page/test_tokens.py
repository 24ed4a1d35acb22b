"""Colours of the page: each pair that stands together can be read."""

from __future__ import annotations

import re
from itertools import product

import pytest

from taskweaver.page.assets import page_files

SURFACES = ("surface-0", "surface-1", "surface-2", "selected")
TEXTS = ("text", "muted", "accent", "done", *(f"branch-{number}" for number in range(7)))
PAIRS = [
    *product(TEXTS, SURFACES),
    ("on-accent", "accent"), ("waits", "waits-ground"), ("failed", "failed-ground"),
    ("text", "waits-ground"), ("text", "failed-ground"), ("muted", "failed-ground"),
]  # fmt: skip
LEAST_TEXT, LEAST_EDGE = 4.5, 3.0


def colours(at: int) -> dict[str, str]:
    text = page_files().files["styles/tokens.css"].content.decode()
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", text)
    return {name: pair[at] for name, *pair in found}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_edges_can_be_seen(theme: int) -> None:
    known = colours(theme)
    weak = {
        pair: round(contrast(known[pair[0]], known[pair[1]]), 2)
        for pair in PAIRS
        if contrast(known[pair[0]], known[pair[1]]) < LEAST_TEXT
    }
    weak |= {
        ("edge", surface): round(found, 2)
        for surface in SURFACES[:3]
        if (found := contrast(known["edge"], known[surface])) < LEAST_EDGE
    }
    assert weak == {}
