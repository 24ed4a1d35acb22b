"""The site and the browser of the tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import find_chromium, find_quick_browser
from web_site import Site, site, traces


@pytest.fixture
def shop() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture
def no_traces() -> Iterator[None]:
    """Look for what a browser left behind."""
    before = set(traces())
    yield
    left = set(traces()) - before
    assert not left, f"left behind by the browser: {left}"


@pytest.fixture
def chromium(no_traces: None) -> Path:
    """The browser's program; nothing of it may be left after the test."""
    return find_chromium()


@pytest.fixture
def quick_browser(no_traces: None) -> str:
    """The program of the quickest browser; nothing of it may be left after the test."""
    return str(find_quick_browser())
