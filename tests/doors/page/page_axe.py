"""Faults of accessibility that axe finds on the page."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from page_tab import PageTab
from sizes import some

ALL = "{resultTypes: ['violations']}"
COLOURS = "{runOnly: {type: 'rule', values: ['color-contrast']}}"
"""The rule whose outcome another theme may change."""
FOUND = (
    "axe.run(PART, RULES).then(({violations}) => violations"
    ".map((one) => `${one.impact}: ${one.id}: ${one.nodes.map((node) => node.html).join()}`))"
)


def load_axe(page: PageTab) -> None:
    """Have axe in the page; skip the test where it is not installed."""
    axe = (files(pytest.importorskip("axe_core_python")) / "axe.min.js").read_text("utf-8")
    page.value(f"{axe};0")


def check(page: PageTab, screen: str, part: str = "", width: int = 1280) -> None:
    """Check what is shown in both themes: axe finds nothing, be it serious or not.

    Where a part alone has changed, axe looks at that; `make long` at all around it too. On a phone
    the main part may be the pane that is not shown.
    """
    themes = ("light", "dark")
    if page.value("matchMedia('(prefers-color-scheme: dark)').matches"):
        themes = ("dark", "light")  # what is drawn is not drawn anew
    places = [json.dumps(part), "document"] if part else ["document"]
    for mode, rules in zip(themes, (ALL, COLOURS), strict=True):
        page.tab.view(width, mode)
        for place in some(places, 1):
            faults = page.value(FOUND.replace("PART", place).replace("RULES", rules))
            found = [one for one in faults if width > 400 or "landmark-one-main" not in one]
            assert found == [], (screen, mode, found)
