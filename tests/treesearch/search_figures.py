"""Figures of reports with nothing in them, for tests of searches that look at none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from search_story import png

from taskweaver.treesearch.reports import figures


@contextmanager
def bare_figures() -> Iterator[None]:
    """Write a small picture of one colour in place of each figure; reports name them all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_render", lambda _draw, _height: png())
        yield
