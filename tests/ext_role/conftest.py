"""The site and the browser of the tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import WARM_BROWSER, find_chromium
from web_site import Site, site, traces


@pytest.fixture(autouse=True, scope="module")
def _browser_goes_on() -> None:
    """Run without the browser of other files: the tests here count their own."""
    WARM_BROWSER.close()


@pytest.fixture
def shop() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture
def chromium() -> Iterator[Path]:
    """The browser's program; nothing of it may be left after the test."""
    before = set(traces())
    yield find_chromium()
    left = set(traces()) - before
    assert not left, f"left behind by the browser: {left}"
